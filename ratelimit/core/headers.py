"""Response headers that tell a caller how much is left."""

from collections.abc import Sequence
from typing import NamedTuple

from ratelimit.core import wire
from ratelimit.core.held import HeldLimit
from ratelimit.core.options import HeaderNames


class Shown(NamedTuple):
    """A limit as headers see it; `over` where it denies, `remaining` as the answer's status has it."""

    held: HeldLimit
    over: bool
    remaining: int
    reset_s: int


def chosen_headers(names: HeaderNames, shown: Sequence[Shown]) -> list[bytes]:
    """Three of one limit: the last that is over and no quota, or else the first of those with least left."""
    chosen, least = None, wire.UINT32
    for one in shown:
        if one.remaining < least:
            chosen, least = one, one.remaining
        if one.over and not one.held.quota:
            chosen, least = one, 0
    if chosen is None:
        return []
    return [
        wire.header(names.limit, str(chosen.held.limit.requests)),
        wire.header(names.remaining, str(chosen.remaining)),
        wire.header(names.reset, str(chosen.reset_s)),
    ]


def structured_headers(shown: Sequence[Shown]) -> list[bytes]:
    """`RateLimit-Policy` and `RateLimit` of all limits, by draft-ietf-httpapi-ratelimit-headers-10.

    A calendar's windows have no length that could be told.
    """
    if not shown:
        return []
    policies, states = [], []
    for held, _, remaining, reset_s in shown:
        name = _string(held.label)
        window = "" if held.limit.calendar is not None else f";w={held.window_s}"
        policies.append(f"{name};q={held.limit.requests}{window}")
        states.append(f"{name};r={remaining};t={reset_s}")
    return [wire.header("RateLimit-Policy", ", ".join(policies)), wire.header("RateLimit", ", ".join(states))]


def _string(text: str) -> str:
    """A String of RFC 9651, which has no characters beyond ASCII."""
    plain = "".join(character if " " <= character <= "~" else "?" for character in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
