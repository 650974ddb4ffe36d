#!/usr/bin/env python3
"""A bot that tells killswitchd that it lives. Needs Python 3.9 or later and nothing else.

    KILLSWITCHD_CONTROL=unix:/run/killswitchd/control.sock python3 bot.py

Beat from the loop that decides what to trade, at least every 5 seconds. Never from a thread or task of its own: it
would go on beating while the loop hangs.
"""

import os
import signal
import sys
import time

# Not needed where killswitchd.py lies beside your bot.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))

from killswitchd import KillSwitch


def main():
    stopping = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.append(True))

    try:
        kill_switch = KillSwitch()
    except ValueError as error:
        sys.exit(f"bot.py: {error}")

    # What is raised here says `fail`, and the exchange cancels the orders. A clean end says goodbye.
    with kill_switch:
        was_armed = None
        while not stopping:
            armed = kill_switch.beat()
            if armed != was_armed:
                print("armed: orders may go out" if armed else "not armed: orders are held back", flush=True)
                was_armed = armed
            if armed:
                pass  # Decide and place orders here.
            time.sleep(1)
        # Cancel your orders here, before the daemon stops guarding them.
    print("goodbye", flush=True)


if __name__ == "__main__":
    main()
