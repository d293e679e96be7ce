"""What a store is asked, and what it answers. Pure values."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from ratelimit.unit import Unit

MOST: Final = 2**53 - 1
"""Hits and counts saturate here: the greatest whole number that a store's script counts exactly."""


class Algorithm(StrEnum):
    """How a counter forgets. A fixed window at once when it ends, the others bit by bit."""

    FIXED_WINDOW = "fixed_window"
    SLIDING_WINDOW = "sliding_window"
    TOKEN_BUCKET = "token_bucket"


@dataclass(frozen=True, slots=True)
class Calendar:
    """Windows that begin where the calendar of a time zone says: `multiple` days, weeks, months or years each."""

    unit: Unit
    zone: str
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """What a counter is held to: `limit` hits a window of `seconds` (or of `calendar`, for fixed windows only).

    `burst` is what a token bucket holds. `charge_denied`: a call that is denied, by this check or another of its
    own, is counted all the same. `denies` is False where being over has no effect on the call (a shadow limit).
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
    saturate at MOST. `reset_s`: whole seconds until the window ends (until the bucket is full), at least 1 while any
    count is left, as envoyproxy/ratelimit counts them. `remembered`: decided from the over-limit memory, unasked."""

    over: bool
    before: int
    after: int
    remaining: int
    reset_s: int
    remembered: bool = False


class FailureKind(StrEnum):
    """Why a check could not be decided."""

    TIMEOUT = "timeout"
    """No answer in time: whether it was counted is unknown. Never asked again."""
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
