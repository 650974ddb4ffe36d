#!/usr/bin/env python3
"""A bot that tells killswitchd that it lives. Needs Python 3.8 or later and nothing else.

    KILLSWITCHD_CONTROL=unix:/run/killswitchd/control.sock python3 bot.py

Copy `KillSwitch` into your bot and call `beat()` from the loop that decides what to trade, at least every 5 seconds.
Never call it from a thread or task of its own: it would go on beating while the loop hangs.
"""

import http.client
import json
import os
import signal
import socket
import time
import uuid


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class KillSwitch:
    def __init__(self):
        # unix:/PATH or HOST:PORT, as in `control.listen` of the daemon.
        self.control = os.environ.get("KILLSWITCHD_CONTROL", "unix:/run/killswitchd/control.sock")
        self.bot = os.environ.get("KILLSWITCHD_BOT", "default")
        self.token_file = os.environ.get("KILLSWITCHD_CONTROL_TOKEN_FILE")
        # By these the daemon tells a beat from a copy of an older one that was held up on its way.
        self.session = uuid.uuid4().hex
        self.seq = 0

    def beat(self):
        """Says that the bot lives. True where all its markets are armed now: orders may go out."""
        reply = self._say("beat", timeout=2)
        if not reply.get("counted", False):
            print(f"the beat did not count: {reply.get('why', 'no answer')}", flush=True)
        # reply["markets"]["BTC_USDT"]["expiresAt"] is the Unix time until which that market is surely armed.
        return reply.get("armed", False)

    def goodbye(self):
        """Says that the bot ends on purpose and has no orders left: the daemon deletes its timers."""
        self._say("goodbye", timeout=10)

    def fail(self):
        """Says that the bot is broken: nothing is renewed any more, and the exchange cancels its orders."""
        self._say("fail", timeout=2)

    def _say(self, word, timeout):
        self.seq += 1
        body = json.dumps({"bot": self.bot, "session": self.session, "seq": self.seq})
        headers = {"Content-Type": "application/json"}
        try:
            if self.token_file:
                with open(self.token_file, encoding="utf-8") as file:
                    headers["Authorization"] = "Bearer " + file.read().strip()
            if self.control.startswith("unix:"):
                connection = UnixConnection(self.control[len("unix:") :], timeout)
            else:
                connection = http.client.HTTPConnection(self.control, timeout=timeout)
            try:
                connection.request("POST", "/v1/" + word, body, headers)
                reply = dict(json.loads(connection.getresponse().read()))
            finally:
                connection.close()
            return {"why": reply["error"]["message"]} if "error" in reply else reply
        except (OSError, ValueError, TypeError, KeyError, http.client.HTTPException) as error:
            # A daemon that is away protects nobody. The bot goes on and holds its orders back.
            return {"why": f"no answer from {self.control}: {error}"}


def main():
    stopping = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.append(True))

    kill_switch = KillSwitch()
    was_armed = None
    try:
        while not stopping:
            armed = kill_switch.beat()
            if armed != was_armed:
                print("armed: orders may go out" if armed else "not armed: orders are held back", flush=True)
                was_armed = armed
            if armed:
                pass  # Decide and place orders here.
            time.sleep(1)
    except BaseException:
        kill_switch.fail()
        raise
    # Cancel your orders here, before the daemon stops guarding them.
    kill_switch.goodbye()
    print("goodbye", flush=True)


if __name__ == "__main__":
    main()
