"""A bot of several tasks: one beats and says when it may trade, another one sees for how long the loop stood still."""

import asyncio
import signal
import time

from killswitchd import AsyncKillSwitch


async def watch(longest):
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.05)
        longest[0] = max(longest[0], time.monotonic() - before - 0.05)


async def main():
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    longest = [0.0]
    watching = asyncio.ensure_future(watch(longest))
    async with AsyncKillSwitch(timeout_seconds=1.0) as kill_switch:
        was_armed = None
        while not stopping.is_set():
            armed = await kill_switch.beat()
            if armed != was_armed:
                print("armed" if armed else "held back", flush=True)
                was_armed = armed
            await asyncio.sleep(0.2)
    watching.cancel()
    print("goodbye:", kill_switch.problem, "longest:", longest[0], flush=True)


asyncio.run(main())
