"""Whether a datacenter answers at all. While it does not, nobody asks but the gate: a few cheap questions a minute.

An agent that hangs accepts connections and holds questions for ever, which looks like a quiet datacenter. So the gate
asks who leads, which takes no permission, passes through the agent to the servers, and is answered at once. Once
something was refused it asks for the token itself, too: a deleted token is no reason for hundreds of questions.
"""

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from discovery.consul.client import Answer, UnreachableError
from discovery.consul.question import rest

LOOK_S: Final = 10.0
"""How often it looks while nothing else is heard."""
PATIENCE_S: Final = 5.0
"""How long the answer may take."""
FIRST_RETRY_S: Final = 0.5
RETRY_LIMIT_S: Final = 5.0
"""While it is shut it looks more seldom, up to this: what is back is noticed within these seconds."""
APART_S: Final = 0.5
"""Two looks are at least this far apart."""
_TICK_S: Final = 0.001
"""A shorter wait is none: clocks are not finer."""
_FULL: Final = 429
_DOUBTS: Final = 2
"""So many failures in a row shut it."""


class Gets(Protocol):
    """What of the client is needed here."""

    @property
    def anonymous(self) -> bool: ...
    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, timeout: float = PATIENCE_S
    ) -> Answer: ...


class Gate:
    """`run` it as a task. Open until it is known to be shut."""

    def __init__(
        self,
        client: Gets,
        params: Mapping[str, str],
        *,
        on_turn: Callable[[], None],
        on_open: Callable[[], None] = lambda: None,
        clock: Callable[[], float],
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`params` name the datacenter. `on_turn` is called after every look that found it open, and whenever the
        reason why it is shut is another; `on_open` before that, where it was shut."""
        self.reason = ""
        """Why it is shut; empty while it is open."""
        self.undecided = False
        """Somebody's failure made it doubt, and it has not found out yet whether the agent is there."""
        self._client, self._params = client, params
        self._on_turn, self._on_open = on_turn, on_open
        self._clock, self._uniform = clock, uniform
        self._opened, self._doubted = asyncio.Event(), asyncio.Event()
        self._opened.set()
        self._heard_at = clock()
        self._looked_at = float("-inf")
        self._token_doubted = False

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    async def opened(self) -> None:
        """Until it is open."""
        await self._opened.wait()

    def heard(self) -> None:
        """Something was answered just now, so there is no need to look for a while."""
        self._heard_at = self._clock()

    def doubt(self, *, token: bool = False) -> None:
        """Somebody's question failed in a way that may not be the question's fault: look now, at the token too."""
        self._token_doubted |= token
        self.undecided = True
        self._doubted.set()

    async def run(self) -> None:
        """Looks until cancelled."""
        failures = 0
        while True:
            if failures:
                await asyncio.sleep(self._retry_s(failures))
            else:
                await self._until_due()
            self._doubted.clear()
            reason = await self._look()
            self._looked_at = self._clock()
            failures = failures + 1 if reason else 0
            if not reason:
                self.heard()
            if not reason or failures >= _DOUBTS:
                self.undecided = False
                self._turn(reason)

    async def _until_due(self) -> None:
        while (wait := self._heard_at + LOOK_S - self._clock()) > _TICK_S and not self._doubted.is_set():
            await rest(self._doubted, wait)
        # Hundreds of questions may fail at once, or one again and again.
        await asyncio.sleep(max(0.0, self._looked_at + APART_S - self._clock()))

    def _retry_s(self, failures: int) -> float:
        whole = min(FIRST_RETRY_S * 2.0 ** min(failures - 1, 8), RETRY_LIMIT_S)
        return self._uniform(whole / 2, whole)

    async def _look(self) -> str:
        """Why the datacenter does not answer; empty where it does."""
        try:
            answer = await self._client.get("/v1/status/leader", self._params, timeout=PATIENCE_S)
            if answer.status == _FULL:
                return ""  # it is there; that it takes no more of us is for who holds connections to hear
            reason = answer.refusal() or _leaderless(answer.body)
            if not reason and self._token_doubted:
                reason = await self._look_at_token()
                self._token_doubted = bool(reason)
        except UnreachableError as error:
            return str(error)
        return reason

    async def _look_at_token(self) -> str:
        answer = await self._client.get("/v1/acl/token/self", self._params, timeout=PATIENCE_S)
        if answer.status == 403 and not self._client.anonymous:
            return f"Consul refuses the token ({answer.said}): it was deleted or has expired; give another one"
        return ""  # what it may not read, each question finds out for itself

    def _turn(self, reason: str) -> None:
        was_open, told = self.is_open, self.reason
        self.reason = reason
        if reason:
            self._opened.clear()
        else:
            self._opened.set()
        if not was_open and not reason:
            self._on_open()
        if not reason or reason != told:
            self._on_turn()


def _leaderless(body: bytes) -> str:
    try:
        leader = json.loads(body)
    except ValueError:
        return "what answers is no Consul agent; check the address"
    return "" if leader else "its servers have elected no leader"
