"""What a store is asked, and what it answers. Pure values."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ratelimit.counters.terms import MOST as MOST
from ratelimit.counters.terms import Algorithm as Algorithm
from ratelimit.counters.terms import Calendar as Calendar
from ratelimit.counters.terms import Terms, terms


@dataclass(frozen=True, slots=True)
class Rule:
    """What a counter is held to: `limit` hits a window of `seconds` (or of `calendar`, for fixed windows only).

    `burst` is what a token bucket holds, 0 for as much as the limit. `charge_denied`: a call that is denied, by this
    check or another of its own, is counted all the same; but sliding windows and token buckets never count a check
    that they refuse themselves, or who keeps asking would never pass again. `denies` is False where being over has no
    effect on the call (a shadow limit). Raises ValueError where the numbers make no limit.
    """

    limit: int
    seconds: int
    algorithm: Algorithm = Algorithm.FIXED_WINDOW
    burst: int = 0
    calendar: Calendar | None = None
    charge_denied: bool = True
    denies: bool = True
    per_second: bool = False
    """Whether it goes to the store for limits a second, where there is one of its own."""
    terms: Terms = field(init=False, repr=False, compare=False)
    """What follows for the algorithms."""

    def __post_init__(self) -> None:
        found = terms(
            self.algorithm, self.limit, self.seconds, self.burst, self.calendar, self.charge_denied, self.denies
        )
        object.__setattr__(self, "terms", found)


class Check(NamedTuple):
    """`hits` on the counter `key` under `rule`. Negative hits are given back, never below zero; 0 only looks, and
    makes no counter."""

    key: bytes
    rule: Rule
    hits: int


Call = tuple[Check, ...]
"""The checks of one call, decided together and in order."""


class Verdict(NamedTuple):
    """What became of a check. `before` and `after` count hits in the window (for a token bucket: tokens in use), and
    saturate at MOST. `reset_s`: whole seconds until the window ends (until a sliding window is empty, a bucket full),
    at least 1 while any count is left, as envoyproxy/ratelimit counts them; `reset_us` is the same to the microsecond
    of the store's clock. `remembered`: decided from the over-limit memory, unasked."""

    over: bool
    before: int
    after: int
    remaining: int
    reset_s: int
    remembered: bool = False
    reset_us: int = 0


class FailureKind(StrEnum):
    """Why a check could not be decided."""

    TIMEOUT = "timeout"
    """No answer in time: whether it was counted is unknown. Never asked again."""
    LOST = "lost"
    """The connection broke before the answer: whether it was counted is unknown. Never asked again."""
    DOWN = "down"
    """No connection: it was not counted."""
    REFUSED = "refused"
    """The store answered with an error: READONLY, CLUSTERDOWN, OOM, no permission."""
    WRONG_TYPE = "wrong_type"
    """Something else lives at the key."""
    SHED = "shed"
    """Too much waits already."""


class Failed(NamedTuple):
    """A check that could not be decided; `detail` is for the operator."""

    kind: FailureKind
    detail: str


Outcome = Verdict | Failed
