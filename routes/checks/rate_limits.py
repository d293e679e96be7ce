"""Checks of rate limits: each by itself, and their names over the whole file."""

from collections.abc import Iterator
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from operator_files.problem import Problem
from operator_files.validate import nearest
from routes import codes
from routes.checks.context import Checked
from routes.convert import rule_name
from routes.model.rate_limit import CALENDAR_UNITS, PartSpec, RateLimitSpec
from routes.rate_limits import ALL_RULES, limit_name, part

Where = tuple[str | int, ...]

_PARTS: Final = tuple(PartSpec.model_fields)


def rate_limit_problems(checked: Checked) -> Iterator[Problem]:
    """Everything that is wrong with the limits of the file and of its rules."""
    first: dict[str, Where] = {}
    for at, name, spec in _limits(checked):
        yield from _parts(checked, at, spec)
        yield from _values(checked, at, spec)
        yield from _window(checked, at, spec)
        if (other := first.setdefault(name, at)) != at:
            line = checked.document.at(other).line
            yield checked.error(
                codes.DUPLICATE_LIMIT, f"the limit on line {line} is named `{name}` too",
                (*at, "name") if spec.name else at, "give each limit a name of its own",
            )  # fmt: skip


def _limits(checked: Checked) -> Iterator[tuple[Where, str, RateLimitSpec]]:
    """Every limit: where it stands, and what it is called."""
    for index, spec in enumerate(checked.file.rate_limits or ()):
        yield ("rate_limits", index), limit_name(ALL_RULES, index, spec), spec
    for number, rule in checked.rules:
        for index, spec in enumerate(rule.rate_limits or ()):
            yield ("rules", number, "rate_limits", index), limit_name(rule_name(number, rule), index, spec), spec


def _parts(checked: Checked, at: Where, spec: RateLimitSpec) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(spec.per or ()):
        written = [key for key in _PARTS if key in entry.model_fields_set]
        if len(written) != 1:
            what = "nothing" if not written else " and ".join(f"`{key}`" for key in written)
            yield checked.error(
                codes.ONE_OF, f"exactly one part of a request goes here, not {what}", (*at, "per", index),
                "make each an entry of its own" if written else "write one of " + _listed(_PARTS),
            )  # fmt: skip
        elif seen.setdefault(part(entry).key, index) != index:
            yield checked.error(
                codes.LIMIT,
                f"`{written[0]}` says again what an entry before it says",
                (*at, "per", index),
                "delete it",
            )
        elif "*" in part(entry).key:
            yield checked.error(
                codes.LIMIT, "a `*` in a name would be taken for a pattern of names", (*at, "per", index),
                "name one without",
            )  # fmt: skip


def _values(checked: Checked, at: Where, spec: RateLimitSpec) -> Iterator[Problem]:
    if spec.values is not None and spec.per is None:
        yield checked.error(
            codes.LIMIT, "there are limits for values, and nothing that they are values of", (*at, "values"),
            "say with `per` what is counted by value", key=True,
        )  # fmt: skip
    if spec.per is None and "absent" in spec.model_fields_set:
        yield checked.warning(
            codes.REDUNDANT, "`absent` changes nothing: the limit is for all requests", (*at, "absent"), "delete it",
            key=True,
        )  # fmt: skip


def _window(checked: Checked, at: Where, spec: RateLimitSpec) -> Iterator[Problem]:
    """The algorithm and what goes with it, as limit files have it too."""
    if spec.burst is not None and spec.algorithm != "token_bucket":
        yield checked.error(
            codes.LIMIT, "only a token bucket has a burst", (*at, "burst"),
            "add `algorithm: token_bucket`, or delete the key", key=True,
        )  # fmt: skip
    if not spec.calendar:
        if spec.time_zone is not None:
            yield checked.error(
                codes.LIMIT, "only a calendar has a time zone", (*at, "time_zone"),
                "add `calendar: true`, or delete the key", key=True,
            )  # fmt: skip
        return
    if spec.algorithm != "fixed_window":
        yield checked.error(
            codes.LIMIT, "only fixed windows begin where a calendar says", (*at, "calendar"),
            "delete it, or `algorithm`", key=True,
        )  # fmt: skip
    units = [spec.allow.unit, *(allow.unit for allow in (spec.values or {}).values() if allow is not None)]
    for unit in dict.fromkeys(unit for unit in units if unit not in CALENDAR_UNITS):
        yield checked.error(
            codes.LIMIT, f"{unit}s are the same in every calendar", (*at, "calendar"),
            "it is for " + _listed(CALENDAR_UNITS), key=True,
        )  # fmt: skip
    if spec.time_zone is not None and not _is_zone(spec.time_zone):
        near = nearest(spec.time_zone, available_timezones())
        fix = f"did you mean `{near}`?" if near else "write one such as `Europe/Berlin` or `UTC`"
        yield checked.error(codes.LIMIT, f"there is no time zone `{spec.time_zone}`", (*at, "time_zone"), fix)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
