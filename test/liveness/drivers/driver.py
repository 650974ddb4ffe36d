"""Does with a client what each line of the standard input says, and prints what came of it as JSON."""

import asyncio
import json
import os
import sys
import time

from killswitchd import AsyncKillSwitch, KillSwitch, KillSwitchError


async def do(client, line):
    word, *values = line.split()
    if word in ("armed", "problem"):
        return client.problem if word == "problem" else client.armed(*values)
    if word == "during":
        beating = asyncio.ensure_future(
            client.beat() if isinstance(client, AsyncKillSwitch) else asyncio.to_thread(client.beat)
        )
        await asyncio.sleep(*map(float, values))
        return {"armed": client.armed(), "done": beating.done(), "counted": await beating}
    if word == "wait_through":
        return await wait_through(client, map(float, values))
    if word == "at":
        return at(type(client), " ".join(values))
    if word == "leave":
        return await leave(client, values == ["broken"])
    try:
        result = getattr(client, word)(*map(float, values))
        return await result if asyncio.iscoroutine(result) else result
    except KillSwitchError as error:
        return f"KillSwitchError: {error}"


async def wait_through(client, jumps):
    """Whether wait_armed has ended after each jump of the clock, and with what."""
    is_async = isinstance(client, AsyncKillSwitch)
    waiting = asyncio.ensure_future(client.wait_armed() if is_async else asyncio.to_thread(client.wait_armed))
    ended = []
    for seconds in jumps:
        await asyncio.sleep(0.3)
        before = time.monotonic
        time.monotonic = lambda before=before, seconds=seconds: before() + seconds
        await asyncio.wait([waiting], timeout=2.0)
        ended.append(waiting.done())
    return {"ended": ended, "armed": await waiting}


def at(kind, address):
    os.environ["KILLSWITCHD_CONTROL"] = address
    try:
        return kind().armed()
    except Exception as error:
        return f"raised: {error}"


async def leave(client, is_broken):
    try:
        if isinstance(client, KillSwitch):
            with client:
                assert not is_broken, "broken"
        else:
            async with client:
                assert not is_broken, "broken"
    except AssertionError as error:
        return f"raised: {error}"


async def main():
    kind = AsyncKillSwitch if sys.argv[1] == "asyncio" else KillSwitch
    seconds = None if sys.argv[2] == "none" else float(sys.argv[2])
    client = kind(raises="raises" in sys.argv, timeout_seconds=seconds)
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(await do(client, line)), flush=True)


asyncio.run(main())
