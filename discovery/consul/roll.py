"""The instances of one service that are in force: those of the last answer, and those that it lacks for no good
reason. Pure.

An instance is gone when an answer had it and the next one, which the agent gave because the index went forward, has
it not. An answer that lacks it for any other reason (after an error, a reset, with a token that may read less) does
not take it away: it is *missing* until a second answer, some time later, lacks it too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self

from discovery.consul.blocking import Worth
from discovery.consul.objects import Instance

Key = tuple[str, str]
ASK_AGAIN_S: Final = 5.0
"""How long after an answer that lacks something it is asked for again."""
AFTER_RESET_S: Final = 300.0
"""The same where the index went back: agents register what runs beside them with a server that began anew every
minute or so, a large fleet more slowly."""
_NONE: Final[Mapping[Key, Instance]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Roll:
    """`present`: of the last answer. `missing`: in force although the last answer lacks them.

    `confirm_at`: when another answer may confirm that what is missing is gone; None where nothing is missing, or
    where asking won't do.
    """

    present: Mapping[Key, Instance] = field(default_factory=lambda: _NONE)
    missing: Mapping[Key, Instance] = field(default_factory=lambda: _NONE)
    confirm_at: float | None = None

    @property
    def instances(self) -> tuple[Instance, ...]:
        """All in force."""
        return (*self.present.values(), *self.missing.values())

    def lost(self, answer: Iterable[Instance]) -> tuple[Instance, ...]:
        """What is in force and not in this answer."""
        there = {instance.key for instance in answer}
        return tuple(instance for instance in self.instances if instance.key not in there)

    def answered(self, answer: Iterable[Instance], worth: Worth, *, now: float, patience_s: float) -> Self:
        """After an answer with everything that the token may read. `patience_s`: how long what a worse than live
        answer lacks stays at least."""
        present = {instance.key: instance for instance in answer}
        missing = {key: instance for key, instance in self.missing.items() if key not in present}
        if worth is not Worth.LIVE:
            if missing and self.confirm_at is not None and now >= self.confirm_at and worth is Worth.FIRST:
                missing = {}
            missing |= {key: instance for key, instance in self.present.items() if key not in present}
        if not missing:
            return replace(self, present=present, missing=_NONE, confirm_at=None)
        confirm_at = self.confirm_at
        newly = missing.keys() - self.missing.keys()
        if worth is Worth.RESET or (worth is Worth.FIRST and (newly or confirm_at is None)):
            confirm_at = max(now + patience_s, confirm_at or now)
        return replace(self, present=present, missing=missing, confirm_at=confirm_at)

    def denied(self, answer: Iterable[Instance]) -> Self:
        """After an answer that lacks what the token may not read: nothing of it is gone, however often it is asked
        for."""
        present = {instance.key: instance for instance in answer}
        missing = {**self.missing, **self.present}
        missing = {key: instance for key, instance in missing.items() if key not in present}
        return replace(self, present=present, missing=missing, confirm_at=None)

    def put_off(self, until: float) -> Self:
        """What is missing may not be confirmed before."""
        return replace(self, confirm_at=until) if self.missing else self

    def let_go(self) -> Self:
        """What is missing is gone: an operator said so."""
        return replace(self, missing=_NONE, confirm_at=None)
