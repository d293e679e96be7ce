"""Follows one service in one datacenter: its instances, all of them, whatever their checks say."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import quote

from discovery.consul.blocking import Bucket, Heard, Worth
from discovery.consul.client import WAIT_S, Answer
from discovery.consul.gate import Gate
from discovery.consul.lanes import Lanes
from discovery.consul.objects import Instance, MisreadError, instances_in
from discovery.consul.permissions import ANY, Permissions, Rights
from discovery.consul.question import Asks, InterruptedQuestionError, NoAnswerError, Question, rest
from discovery.consul.roll import AFTER_RESET_S, ASK_AGAIN_S, Roll

CANNOT_CONFIRM_S: Final = 30.0
"""How long what is missing waits for the next attempt where the first could not confirm it."""
_SHORTEST_S: Final = 0.001
"""A wait of 0 would be none at all."""
_NOT_ALL: Final = (
    'the token may not read all of its instances; give it `service_prefix "" read` and `node_prefix "" read`'
)


class Surroundings(Protocol):
    """What a watch needs to know of its datacenter."""

    def settled_in_s(self) -> float:
        """How long what is missing stays after a reset that any query saw; 0 for none."""

    @property
    def lists_something(self) -> bool:
        """The catalog has services that are wanted: an empty one confirms nothing."""

    def reset(self) -> None:
        """An index went back."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all watches of a datacenter share."""

    client: Asks
    params: Mapping[str, str]
    gate: Gate
    lanes: Lanes
    bucket: Bucket
    permissions: Permissions
    clock: Callable[[], float]
    uniform: Callable[[float, float], float]


class Watch:
    """`run` it as a task. `on_roll` is told of each next roll and whether it was seen to change; `trouble` says why
    there is no answer, and is empty while there is one."""

    def __init__(
        self,
        service: str,
        shared: Shared,
        around: Surroundings,
        *,
        expression: str,
        on_roll: Callable[["Watch", Worth], None],
        on_trouble: Callable[["Watch"], None],
    ) -> None:
        """`expression` is Consul's filter over instances, or empty."""
        self.service = service
        self.roll = Roll()
        self.trouble = ""
        self.answered = self.tried = False
        self.partial = False
        """Consul said that there are instances that the token may not read."""
        self._shared, self._around = shared, around
        self._on_roll, self._on_trouble = on_roll, on_trouble
        self._selects = bool(expression)
        self._turn = asyncio.Event()
        self._question = Question(
            shared.client,
            f"/v1/health/service/{quote(service, safe='')}",
            {**shared.params, **({"filter": expression} if expression else {})},
            shared=shared.bucket,
            clock=shared.clock,
            uniform=shared.uniform,
        )

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self._shared.gate.opened()
                await self._step()
        finally:
            self._shared.lanes.leave(self)

    def ask_anew(self) -> None:
        """The agent was away."""
        self._turn.set()
        self._question.ask_anew()

    def hurry(self) -> None:
        """Something about it seems to have changed: do not wait."""
        self._turn.set()
        self._question.wake()

    def give_way(self) -> None:
        """Its lane is somebody else's."""
        self._question.interrupt()

    def let_go(self) -> None:
        """What is missing is gone: an operator said so."""
        self.roll = self.roll.let_go()

    async def _step(self) -> None:
        try:
            answer, heard = await self._ask()
            await self._take(answer, heard)
        except InterruptedQuestionError:
            return
        except NoAnswerError as error:
            if error.agent or error.token:
                self._shared.gate.doubt(token=error.token)
            if error.full:
                self._shared.lanes.give_up(self)
            self._failed(str(error))
        except Exception as error:  # one service's strange answer must not cost the others
            self._question.failed(NoAnswerError(""))
            self._failed(f"internal error, please report it: {error!r}")

    async def _ask(self) -> tuple[Answer, Heard]:
        lanes, confirming = self._shared.lanes, self._is_due()
        has_lane = lanes.claim(self)
        if not has_lane and self.answered:
            self._turn.clear()
            await rest(self._turn, lanes.turn_s())
            confirming = self._is_due()
        wait_s = self._until_due(WAIT_S) if has_lane else 0.0
        async with lanes.connection(self):
            answer, heard = await self._question.heard(wait_s=wait_s, again=confirming)
        self._shared.gate.heard()
        return answer, heard

    async def _take(self, answer: Answer, heard: Heard) -> None:
        try:
            instances = instances_in(answer.body) if heard.changed else tuple(self.roll.present.values())
        except MisreadError as error:
            raise self._question.failed(NoAnswerError(str(error), agent=True)) from error
        if heard.worth is Worth.RESET:
            self._around.reset()
        old = self.roll
        lost = old.lost(instances)
        if lost or self._may_be_hidden(answer, instances):
            rights = await self._rights(answer, instances, lost)
            if rights.denied or not rights.known:
                self.roll = old.denied(instances)
                if self.roll != old:
                    self._on_roll(self, Worth.FIRST)
                raise self._question.failed(NoAnswerError(rights.why, token=not rights.known))
        patience = max(AFTER_RESET_S if heard.worth is Worth.RESET else ASK_AGAIN_S, self._around.settled_in_s())
        self.roll = old.answered(instances, heard.worth, now=self._shared.clock(), patience_s=patience)
        # Only an answer that was not waited for has the sign.
        partial = answer.filtered or (self.partial and heard.worth is not Worth.FIRST)
        news = self.roll != old or not self.answered or partial != self.partial
        self.answered = self.tried = True
        self.partial = partial
        self._troubled("")
        if news:
            self._on_roll(self, heard.worth)

    def _may_be_hidden(self, answer: Answer, instances: Collection[Instance]) -> bool:
        """The catalog has the service, and no instance of it shows: Consul gives no sign to who has no token. A
        filter may leave nothing for a better reason."""
        return not instances and (answer.filtered or not (self.answered or self._selects))

    async def _rights(self, answer: Answer, instances: Collection[Instance], lost: Collection[Instance]) -> Rights:
        """Whether what an answer lacks may be read at all."""
        nodes = {one.node.node for one in lost} or {ANY}
        rights = await self._shared.permissions.to_read([self.service], nodes)
        if answer.filtered and not instances and rights.known and not rights.denied:
            return Rights(known=True, services=frozenset({self.service}), why=_NOT_ALL)
        return rights

    def _is_due(self) -> bool:
        """Whether to ask again for what is missing. Puts it off where an answer would confirm nothing."""
        now, due = self._shared.clock(), self.roll.confirm_at
        if due is None or now < due:
            return False
        settled = self._around.settled_in_s()
        if settled > 0 or not self._around.lists_something:
            self.roll = self.roll.put_off(now + (settled or CANNOT_CONFIRM_S))
            return False
        return True

    def _until_due(self, longest: float) -> float:
        due = self.roll.confirm_at
        return longest if due is None else min(longest, max(due - self._shared.clock(), _SHORTEST_S))

    def _failed(self, reason: str) -> None:
        first, self.tried = not self.tried, True
        if reason == self.trouble and first:
            self._on_trouble(self)
        self._troubled(reason)

    def _troubled(self, reason: str) -> None:
        if reason != self.trouble:
            self.trouble = reason
            self._on_trouble(self)
