"""One server: its connection, made anew whenever it ends, and what is under way on it."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol

import hiredis

from ratelimit.counters.check import Failed, FailureKind
from ratelimit.counters.redis.backoff import Backoff
from ratelimit.counters.redis.batch import Batch, MakeBatch
from ratelimit.counters.redis.connection import Connection, Reply, UnreachableError
from ratelimit.counters.redis.turn import Part
from ratelimit.counters.stats import StoreStats

MOST_IN_FLIGHT: Final = 3
"""One is decided while the others travel; what waits meanwhile goes together in the one after."""
MOST_KEYS: Final = 256
MOST_CHECKS: Final = 1024
"""In one script, so that it stops the server for a millisecond or two at most."""
MOST_WAITING: Final = 4096
PULSE_S: Final = 2.0
"""How often a connection is asked whether it still answers, and how long that may take: without calls, or with few,
nobody else would notice that the server hangs."""
RETRY_S: Final = 0.005
"""A call whose keys are on the move from one node to another (TRYAGAIN) is asked again after this."""
_ELSEWHERE: Final = frozenset({"READONLY", "MASTERDOWN", "NOAUTH", "WRONGPASS", "LOADING"})
"""Errors that this connection will not get over: the next one asks anew where to go."""


class Owner(Protocol):
    """Who the node belongs to."""

    def freed(self) -> None:
        """It takes parts again."""

    def changed(self) -> None:
        """It is up, or down, or down for another reason."""

    def redirected(self, part: Part, place: str, *, asking: bool) -> None:
        """The slot of this part is at another node: for now (`asking`), or for good. It was not counted."""


class _Flight:
    """The commands that were written together, at a time of the event loop's clock. That one may go in whole
    milliseconds, so another measures how long the answer takes."""

    __slots__ = ("_began", "commands", "sent_at")

    def __init__(self, sent_at: float) -> None:
        self.sent_at = sent_at
        self._began = time.perf_counter()
        self.commands: set[_Command] = set()

    def took_s(self) -> float:
        return time.perf_counter() - self._began


class _Command:
    """One script under way. `asking`: with ASKING before it, so that a slot's next owner takes it."""

    __slots__ = ("asking", "batch", "flight", "node", "whole")

    def __init__(self, node: "Node", flight: _Flight, batch: Batch, asking: bool) -> None:
        self.node = node
        self.flight = flight
        self.batch = batch
        self.asking = asking
        self.whole = False

    def packed(self) -> bytes:
        return (_ASKING if self.asking else b"") + self.batch.packed(whole=self.whole)

    def sinks(self) -> tuple[Callable[[Reply], None], ...]:
        return (_ignored, self.answered) if self.asking else (self.answered,)

    def answered(self, reply: Reply) -> None:
        self.node.answered(self, reply)


_PING: Final = b"*1\r\n$4\r\nPING\r\n"
_ASKING: Final = b"*1\r\n$6\r\nASKING\r\n"


def _ignored(reply: Reply) -> None:
    """What ASKING says does not matter: the command behind it says what is wrong."""


class Node:
    """`dial` makes a connection, or raises UnreachableError. `give_up_s`: without an answer for so long the
    connection is given up; what is heard of it later counts for nothing. `answered_at`: when it was last known to
    answer, within PULSE_S, in unix seconds."""

    def __init__(
        self,
        place: str,
        dial: Callable[[], Awaitable[Connection]],
        make_batch: MakeBatch,
        owner: Owner,
        stats: StoreStats,
        *,
        give_up_s: float,
        backoff: Backoff,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.place = place
        self.error = f"{place}: not connected yet"
        self._loop = asyncio.get_running_loop()
        self._dial = dial
        self._make_batch = make_batch
        self._owner = owner
        self._stats = stats
        self._give_up_s = give_up_s
        self._backoff = backoff
        self._wall = wall
        self._waiting: deque[Part] = deque()
        self._asking: set[Part] = set()
        self._flights: list[_Flight] = []
        self.connection: Connection | None = None
        self.answered_at: float | None = None
        self._is_new = True
        """No attempt to connect has ended yet: what comes meanwhile waits for it."""
        self._task: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None

    @property
    def is_up(self) -> bool:
        return self.connection is not None

    @property
    def is_free(self) -> bool:
        """Whether parts would be sent at once."""
        return self.connection is not None and len(self._flights) < MOST_IN_FLIGHT and not self._waiting

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def start(self) -> None:
        self._task = self._loop.create_task(self._live(), name=f"counters at {self.place}")

    async def stop(self) -> None:
        """Ends the connection; what is under way fails."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        self._down("it was stopped")

    def decide(self, parts: Sequence[Part], *, asking: bool = False) -> None:
        """Sends them, now or when there is room, in order."""
        room = MOST_WAITING - len(self._waiting)
        if self.connection is None and not self._is_new:
            self._fail(parts, Failed(FailureKind.DOWN, self.error))
            return
        if len(parts) > room:
            self._fail(parts[room:], Failed(FailureKind.SHED, f"{MOST_WAITING} calls wait for {self.place}"))
            parts = parts[:room]
        if asking:
            self._asking.update(parts)
        self._waiting.extend(parts)
        self._pump()

    def _fail(self, parts: Iterable[Part], failed: Failed) -> None:
        for part in parts:
            part.fail(failed, self._stats)

    def drop_settled(self) -> None:
        """Forgets what waits but has been settled meanwhile, by its deadline."""
        self._waiting = deque(part for part in self._waiting if not part.is_settled)
        self._asking.intersection_update(self._waiting)

    def _pump(self) -> None:
        while self._waiting and self.connection is not None and len(self._flights) < MOST_IN_FLIGHT:
            taken = self._taken()
            if not taken:
                return
            flight = _Flight(self._loop.time())
            now = self._wall()
            packed: list[bytes] = []
            sinks: list[Callable[[Reply], None]] = []
            for (_, asking), parts in taken.items():
                command = _Command(self, flight, self._make_batch(parts, now), asking)
                flight.commands.add(command)
                packed.append(command.packed())
                sinks += command.sinks()
            self._flights.append(flight)
            self.connection.send(b"".join(packed), sinks)
            if self._watch is None:
                self._watch = self._loop.call_later(self._give_up_s, self._look)

    def _taken(self) -> dict[tuple[int, bool], list[Part]]:
        """What goes next, by slot: calls in their order, whole, up to what a script takes."""
        taken: dict[tuple[int, bool], list[Part]] = {}
        keys: set[bytes] = set()
        parts: list[Part] = []
        waiting, checks, slot = self._waiting, 0, -1
        while waiting and checks < MOST_CHECKS and len(keys) < MOST_KEYS:
            part = waiting[0]
            if checks and len(keys) + len(part.checks) > MOST_KEYS:
                break
            waiting.popleft()
            if part.turn.settled[part.place]:
                continue
            for check in part.checks:
                keys.add(check[0])
            checks += len(part.checks)
            if self._asking or part.slot != slot:
                is_asking = part in self._asking
                self._asking.discard(part)
                parts = taken.setdefault((part.slot, is_asking), [])
                slot = -1 if is_asking else part.slot
            parts.append(part)
        return taken

    def answered(self, command: _Command, reply: Reply) -> None:
        """Told by the connection, once for each command."""
        flight = command.flight
        if isinstance(reply, hiredis.ReplyError):
            if self._asked_again(command, str(reply)):
                return
        else:
            self._backoff.reset()
            if wrong := command.batch.settle(reply, self._stats):
                self._leave_if(wrong)
        flight.commands.discard(command)
        if flight.commands or flight not in self._flights:
            return
        self._flights.remove(flight)
        self._stats.round_trip(flight.took_s())
        self._pump()
        if not self._waiting:
            self._owner.freed()

    def _asked_again(self, command: _Command, error: str) -> bool:
        """Handles an error for all of a command, which was not carried out then. True: it is under way again."""
        code, _, rest = error.partition(" ")
        parts = command.batch.parts
        match code:
            case "NOSCRIPT" if not command.whole and self.connection is not None:
                command.whole = True
                self.connection.send(command.packed(), command.sinks())
                return True
            case "MOVED" | "ASK":
                for part in parts:
                    self._owner.redirected(part, rest.rpartition(" ")[2], asking=code == "ASK")
            case "TRYAGAIN":
                self._loop.call_later(RETRY_S, self._retry, list(parts), command.asking)
            case _:
                self._fail(parts, Failed(FailureKind.REFUSED, f"{self.place}: {error}"))
                self._leave_if(error)
        return False

    def _retry(self, parts: list[Part], asking: bool) -> None:
        self.decide([part for part in parts if not part.is_settled], asking=asking)

    def _leave_if(self, error: str) -> None:
        if error.partition(" ")[0] in _ELSEWHERE and self.connection is not None:
            self.connection.abort(error)

    def _look(self) -> None:
        """Gives up a connection whose oldest command has waited too long."""
        self._watch = None
        if not self._flights or self.connection is None:
            return
        until = self._flights[0].sent_at + self._give_up_s
        if until <= self._loop.time():
            self.connection.abort(f"no answer within {self._give_up_s:g} s")
        else:
            self._watch = self._loop.call_at(until, self._look)

    async def _live(self) -> None:
        first = True
        while True:
            try:
                connection = await self._dial()
            except UnreachableError as error:
                self._down(str(error))
            else:
                self._stats.reconnects += not first
                first = False
                self._up(connection)
                try:
                    await self._watched(connection)
                except asyncio.CancelledError:
                    connection.abort("it was stopped")
                    raise
            await asyncio.sleep(self._backoff.next())

    async def _watched(self, connection: Connection) -> None:
        """Until it ends, which it does if it says nothing."""
        lost = connection.lost
        while not lost.done():
            self.answered_at = self._wall()
            await asyncio.wait((lost,), timeout=PULSE_S)
            answer: asyncio.Future[Reply] = self._loop.create_future()
            connection.send(_PING, (answer.set_result,))
            await asyncio.wait((answer, lost), timeout=PULSE_S, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # this process may be what was late
            if not (answer.done() or lost.done()):
                connection.abort(f"no answer within {PULSE_S:g} s")
            elif answer.done() and isinstance(answer.result(), hiredis.ReplyError):
                self._leave_if(str(answer.result()))

    def _up(self, connection: Connection) -> None:
        if connection.lost.done():
            self._down(f"{self.place}: {connection.lost.result()}")
            return
        connection.on_lost = lambda reason: self._down(f"{self.place}: {reason}")
        self.connection, self.error, self._is_new = connection, "", False
        self._pump()
        self._owner.changed()
        self._owner.freed()

    def _down(self, error: str) -> None:
        """What was sent has an unknown outcome; what was not sent was not counted."""
        self._is_new = False
        self.connection, is_news, self.error = None, self.error != error, error
        flights, self._flights = self._flights, []
        waiting, self._waiting = self._waiting, deque()
        self._asking.clear()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        for flight in flights:
            for command in flight.commands:
                self._fail(command.batch.parts, Failed(FailureKind.LOST, error))
        self._fail(waiting, Failed(FailureKind.DOWN, error))
        if is_news:
            self._owner.changed()
        self._owner.freed()
