"""The limits in force as text, for people and for tools that read envoyproxy/ratelimit's /rlconfig."""

from collections.abc import Iterator

from ratelimit.counters.check import Algorithm
from ratelimit.limits.limit import Limit
from ratelimit.limits.tree import LimitTree


def dump(tree: LimitTree) -> str:
    """A line for each limit, in the order of the files: the words of envoyproxy/ratelimit, then what it has no like
    of where the limit has it."""
    return "".join(
        f"{domain}.{limit.path}: {', '.join((*_theirs(limit), *_ours(limit)))}\n" for domain, limit in tree.limits()
    )


def _theirs(limit: Limit) -> Iterator[str]:
    unit = "UNKNOWN" if limit.unlimited else limit.unit.name
    yield f"unit={unit} requests_per_unit={limit.requests}"
    yield f"shadow_mode: {_flag(limit.shadow)}"
    yield f"quota_mode: {_flag(limit.quota)}"


def _ours(limit: Limit) -> Iterator[str]:
    if limit.unlimited:
        yield "unlimited: true"
    if limit.multiplier != 1:
        yield f"unit_multiplier: {limit.multiplier}"
    if limit.algorithm is not Algorithm.FIXED_WINDOW:
        yield f"algorithm: {limit.algorithm}"
    if limit.burst is not None:
        yield f"burst: {limit.burst}"
    if limit.calendar is not None:
        yield f"calendar: true, time_zone: {limit.calendar.zone}"
    if not limit.charge_denied:
        yield "charge_denied: false"
    if limit.on_store_failure is not None:
        yield f"on_store_failure: {limit.on_store_failure}"


def _flag(value: bool) -> str:
    return str(value).lower()
