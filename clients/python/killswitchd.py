"""Tells killswitchd that a bot lives, and the bot whether it is protected.

One file for Python 3.9 and later, standard library only: copy it beside your bot.

    from killswitchd import KillSwitch

    with KillSwitch("unix:/run/killswitchd/control.sock") as kill_switch:
        kill_switch.wait_armed()
        while trading():
            if kill_switch.beat():
                place_orders()
            time.sleep(1)

`AsyncKillSwitch` is the same for asyncio: `async with`, and `await` before each word.

Beat from the loop that decides what to trade, at least every 5 seconds, and never from a thread, task or timer of its
own: that would go on while the loop hangs. Where a beat is not answered, nobody knows whether the timers still stand:
hold new orders back and go on beating. The end of the `with` block says goodbye, after which the daemon deletes the
timers: cancel your orders before it. An exception says `fail` instead: nothing is renewed, and the exchange cancels.
"""

import asyncio
import json
import logging
import os
import re
import socket
import time
import uuid
from typing import Any, Dict, Optional, Tuple, Union

__all__ = ["AsyncKillSwitch", "KillSwitch", "KillSwitchError"]

_LOG = logging.getLogger("killswitchd")
_PAUSE_SECONDS = 0.5
_WAIT_SECONDS = 60.0
_LONGEST_SECONDS = 86400.0  # A socket cannot wait for ever.
_MOST_BYTES = 1 << 20
_Address = Union[str, Tuple[str, int]]


class KillSwitchError(Exception):
    """The daemon did not answer, or refused the word. Raised only with `raises=True`."""


class _NotAsked(Exception):
    """Nothing was sent."""


class _Words:
    """What the client for a loop and the one for asyncio share: what is said, and what an answer means."""

    def __init__(
        self,
        control: Optional[str] = None,
        *,
        bot: Optional[str] = None,
        token_file: Optional[str] = None,
        timeout_seconds: Optional[float] = 2.0,
        raises: bool = False,
    ) -> None:
        """`control` is unix:/PATH or HOST:PORT, as in the daemon's `control.listen`; `token_file` names the file with
        the token for HOST:PORT. Left out, they come from KILLSWITCHD_CONTROL, KILLSWITCHD_BOT and
        KILLSWITCHD_CONTROL_TOKEN_FILE. Raises ValueError where the address cannot be read. An IP address costs no
        lookup, which the timeout of a plain loop cannot cut short."""
        env = os.environ
        self._control = control or env.get("KILLSWITCHD_CONTROL") or "unix:/run/killswitchd/control.sock"
        self._address = _read_address(self._control)
        self._bot = bot or env.get("KILLSWITCHD_BOT")
        self._token_file = token_file or env.get("KILLSWITCHD_CONTROL_TOKEN_FILE")
        self._timeout = 2.0 if timeout_seconds is None else timeout_seconds
        self._raises = raises
        # By these the daemon tells a beat from a copy of an older one that was held up on its way.
        self._session, self._seq, self._process = "", 0, 0
        self._begin()
        self._asked = (0.0, 0.0)
        self._unheard: Optional[str] = None
        self.problem: Optional[str] = None  # Why the last word failed or did not count; None where all is well.
        self.reply: Dict[str, Any] = {}  # The answer to the last beat, as docs/http.md describes it.

    def armed(self, market: Optional[str] = None) -> bool:
        """Whether the answer to the last beat was "armed", and what it promised still holds: of all markets of the
        bot, or of one. Asks nobody."""
        markets = self.reply.get("markets", {})
        if market in markets:
            return self._holds(markets[market])
        if market is not None and not self.reply.get("marketsOmitted"):
            return False
        return self.reply.get("armed") is True and all(map(self._holds, markets.values()))

    def _holds(self, market: Dict[str, Any]) -> bool:
        # By two clocks: the monotonic one stands still while the host sleeps, and the other one can be set back.
        left = market.get("expiresInSeconds") or 0
        return market.get("armed") is True and all(now - then < left for now, then in zip(_now(), self._asked))

    def _begin(self) -> None:
        """A process that was forked off is another instance: its words would be taken for those of its parent."""
        if self._process != os.getpid():
            self._session, self._seq, self._process = uuid.uuid4().hex, 0, os.getpid()

    def _request(self, word: str, timeout: float) -> bytes:
        self._begin()
        self._seq += 1
        said = {"session": self._session, "seq": self._seq, **({"bot": self._bot} if self._bot else {})}
        if word == "goodbye":
            said["waitSeconds"] = max(0, min(60, timeout - 1))
        body = json.dumps(said)
        over_tcp = not isinstance(self._address, str)
        head = [f"POST /v1/{word} HTTP/1.0", f"Host: {self._control if over_tcp else 'localhost'}"]
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if over_tcp and self._token_file:
            try:
                with open(self._token_file, encoding="utf-8") as file:
                    head.append("Authorization: Bearer " + "".join(file.read().split()))
            except (OSError, ValueError) as error:
                named = "the file of the token, from token_file or KILLSWITCHD_CONTROL_TOKEN_FILE,"
                raise _NotAsked(f"{self._control} was not asked: {named} cannot be read: {error}") from error
        return "\r\n".join([*head, "", body]).encode()

    def _take(self, word: str, answer: Union[bytes, Exception], asked: Tuple[float, float]) -> bool:
        """What the answer says, or its absence: whether all markets are armed, or whether the word was done. `asked`
        is the time before the word was sent."""
        try:
            if isinstance(answer, Exception):
                raise answer
            reply = _read_reply(answer)
            self._unheard = str(reply["error"]["message"]) if "error" in reply else None
            # After a goodbye and a failure nothing is known to be armed.
            self.reply = reply if word == "beat" and self._unheard is None else {}
            self._asked = asked
            armed = self.armed()
        except Exception as error:  # Nothing that an answer can hold may end the loop of the bot.
            reply, self.reply, armed = {}, {}, False
            why = str(error) or "timed out"
            self._unheard = why if isinstance(error, _NotAsked) else f"no answer from {self._control}: {why}"
        problem = self._unheard
        if problem is None and reply.get("counted") is not True:
            problem = f"the {word} did not count: {reply.get('why', 'no reason given')}"
        elif problem is None and word == "goodbye" and reply.get("done") is not True:
            problem = f"the goodbye is not done: {reply.get('markets')}"
        if problem is not None and problem != self.problem:
            _LOG.warning("%s", problem)
        self.problem = problem
        return armed if word == "beat" else problem is None

    def _result(self, result: bool) -> bool:
        if self._raises and self._unheard is not None:
            raise KillSwitchError(self._unheard)
        return result


class KillSwitch(_Words):
    """For a bot that is a plain loop."""

    def beat(self) -> bool:
        """Says that the bot lives. True where all its markets are armed: orders may go out."""
        return self._result(self._say("beat", self._timeout))

    def wait_armed(self, timeout_seconds: Optional[float] = None) -> bool:
        """Beats until all markets are armed, for 60 seconds unless given. False where that takes longer: go into the
        loop all the same, which holds orders back. A bot that waits for ever for one market beats for all of them, and
        its orders in the others stand, though it decides nothing."""
        until = time.monotonic() + (_WAIT_SECONDS if timeout_seconds is None else timeout_seconds)
        while not self._say("beat", min(self._timeout, _left(until) + _PAUSE_SECONDS)) and _left(until) > 0:
            time.sleep(min(_PAUSE_SECONDS, _left(until)))
        return self._result(self.armed())

    def goodbye(self, timeout_seconds: float = 10.0) -> bool:
        """Says that the bot ends on purpose and has no orders left. True once the daemon has ended the timers."""
        return self._result(self._say("goodbye", timeout_seconds))

    def fail(self) -> bool:
        """Says that the bot is broken: nothing is renewed any more, and the exchange cancels its orders."""
        return self._result(self._say("fail", self._timeout))

    def __enter__(self) -> "KillSwitch":
        self._begin()
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        if self._process == os.getpid():  # One that was forked off in the block, and never spoke, has no last word.
            self._say(*(("goodbye", 10.0) if error is None else ("fail", self._timeout)))

    def _say(self, word: str, timeout: float) -> bool:
        answer: Union[bytes, Exception]
        asked = _now()
        try:
            timeout = min(timeout, _LONGEST_SECONDS)
            answer = _ask(self._address, self._request(word, timeout), time.monotonic() + timeout)
        except Exception as error:
            answer = error
        return self._take(word, answer, asked)


class AsyncKillSwitch(_Words):
    """The same for asyncio."""

    async def beat(self) -> bool:
        return self._result(await self._say("beat", self._timeout))

    async def wait_armed(self, timeout_seconds: Optional[float] = None) -> bool:
        until = time.monotonic() + (_WAIT_SECONDS if timeout_seconds is None else timeout_seconds)
        while not await self._say("beat", min(self._timeout, _left(until) + _PAUSE_SECONDS)) and _left(until) > 0:
            await asyncio.sleep(min(_PAUSE_SECONDS, _left(until)))
        return self._result(self.armed())

    async def goodbye(self, timeout_seconds: float = 10.0) -> bool:
        return self._result(await self._say("goodbye", timeout_seconds))

    async def fail(self) -> bool:
        return self._result(await self._say("fail", self._timeout))

    async def __aenter__(self) -> "AsyncKillSwitch":
        self._begin()
        return self

    async def __aexit__(self, error: Any, *_: Any) -> None:
        if self._process == os.getpid():
            await self._say(*(("goodbye", 10.0) if error is None else ("fail", self._timeout)))

    async def _say(self, word: str, timeout: float) -> bool:
        answer: Union[bytes, Exception]
        asked = _now()
        try:
            timeout = min(timeout, _LONGEST_SECONDS)
            answer = await asyncio.wait_for(_ask_async(self._address, self._request(word, timeout)), timeout)
        except Exception as error:
            answer = error
        return self._take(word, answer, asked)


def _now() -> Tuple[float, float]:
    return time.monotonic(), time.time()


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _read_address(control: str) -> _Address:
    if control.startswith("unix:/"):
        return control[len("unix:") :]
    found = re.fullmatch(r"([^\s:]+|\[[0-9A-Fa-f:]+\]):([0-9]+)", control)
    if found is None or not 0 < int(found[2]) < 65536:
        raise ValueError(f"control, or KILLSWITCHD_CONTROL: found {control!r}; allowed: unix:/PATH or HOST:PORT")
    return found[1].strip("[]"), int(found[2])


def _read_reply(answer: bytes) -> Dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        reply = dict(json.loads(body))
        # Some gateways answer with a body that they have kept.
        if "error" in reply or ("counted" in reply and re.match(rb"HTTP/1\.[01] [24]", head)):
            return reply
    except (TypeError, ValueError):
        pass
    first = head[:40].decode("ascii", "replace").splitlines()[:1]
    raise ValueError(f"{first} is no answer of killswitchd")


def _ask(address: _Address, request: bytes, until: float) -> bytes:
    def left() -> float:
        seconds = until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        return seconds

    with _socket_for(address, left()) as connection:
        connection.sendall(request)
        answer, some = b"", b"more"
        while some and len(answer) < _MOST_BYTES:
            connection.settimeout(left())
            some = connection.recv(65536)
            answer += some
        return answer


def _socket_for(address: _Address, timeout: float) -> socket.socket:
    if not isinstance(address, str):
        return socket.create_connection(address, timeout)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


async def _ask_async(address: _Address, request: bytes) -> bytes:
    connecting = (
        asyncio.open_unix_connection(address) if isinstance(address, str) else asyncio.open_connection(*address)
    )
    reader, writer = await connecting
    try:
        writer.write(request)
        answer, some = b"", b"more"
        while some and len(answer) < _MOST_BYTES:
            some = await reader.read(65536)
            answer += some
        return answer
    finally:
        writer.close()
