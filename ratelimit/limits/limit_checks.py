"""What is wrong with the limits of one descriptor, beyond their form."""

from collections.abc import Iterator, Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from operator_files.problem import Code, Problem, Severity
from operator_files.validate import did_you_mean, nearest
from operator_files.yaml import Document, Loc
from ratelimit.counters.check import Algorithm, Rule
from ratelimit.limits import codes, compatible
from ratelimit.limits.model import OneOfSeveralSpec
from ratelimit.limits.window import CALENDAR_UNITS, LONGEST_S
from ratelimit.unit import Unit

Data = Mapping[str, object]
_Path = tuple[str | int, ...]

_UNITS = {unit.name.lower(): unit for unit in Unit}


def unit_of(word: object) -> Unit | None:
    """The unit that a file means, in any case of letters."""
    return _UNITS.get(word.lower()) if isinstance(word, str) else None


def limit_problems(document: Document, descriptor: Data, loc: _Path, *, shared_keys: bool) -> Iterator[Problem]:
    """Of `rate_limit` and `rate_limits` of a descriptor."""
    one, several = descriptor.get("rate_limit"), descriptor.get("rate_limits")
    if one is not None and several is not None:
        yield document.problem(
            codes.SEVERAL,
            "there is a `rate_limit` beside `rate_limits`",
            (*loc, "rate_limits"),
            key=True,
            fix="put all of them into `rate_limits`",
        )
    if shared_keys and several is not None:
        yield document.problem(
            codes.INCOMPATIBLE,
            "envoyproxy/ratelimit knows one limit a descriptor",
            (*loc, "rate_limits"),
            key=True,
            fix="write one `rate_limit`, or use keys of our own",
        )
    limits: list[tuple[Data, _Path]] = []
    if isinstance(one, dict):
        limits.append((one, (*loc, "rate_limit")))
    if isinstance(several, list):
        limits += [(data, (*loc, "rate_limits", at)) for at, data in enumerate(several) if isinstance(data, dict)]
        yield from _same_windows(document, several, (*loc, "rate_limits"))
    for data, here in limits:
        yield from _Limit(document, data, here).problems(shared_keys=shared_keys)


def _same_windows(document: Document, several: list[object], loc: _Path) -> Iterator[Problem]:
    seen: dict[object, _Path] = {}
    for index, data in enumerate(several):
        if not isinstance(data, dict):
            continue
        if data.get("unlimited") is True:
            said = "one of several limits cannot be unlimited"
            yield document.problem(codes.SEVERAL, said, (*loc, index, "unlimited"), key=True, fix="delete it")
        elif (window := _Limit(document, data, (*loc, index)).window()) is not None:
            first = seen.setdefault(window, (*loc, index))
            if first != (*loc, index):
                line = document.at(first).line
                yield document.problem(
                    codes.SEVERAL,
                    f"the limit on line {line} has the same window and algorithm, so both would be one counter",
                    (*loc, index),
                    fix="keep the stricter one",
                )


class _Limit:
    """One limit; where something has a wrong form it is left alone."""

    def __init__(self, document: Document, data: Data, loc: _Path) -> None:
        self._document = document
        self._data = data
        self._loc = loc
        self._unit = unit_of(data.get("unit"))
        self._multiplier = _whole(data.get("unit_multiplier"), 1)
        self._algorithm = data.get("algorithm") or Algorithm.FIXED_WINDOW.value

    def problems(self, *, shared_keys: bool) -> Iterator[Problem]:
        if self._data.get("unlimited") is True:
            yield from self._unlimited()
        elif isinstance(self._data.get("unlimited", False), bool):
            yield from self._units()
            yield from self._calendar()
            yield from self._bucket()
            yield from self._numbers()
        yield from self._replaces()
        if shared_keys:
            yield from self._incompatible()

    def window(self) -> object:
        """What makes it a counter of its own; None where that cannot be told."""
        if self._unit is None or self._multiplier is None:
            return None
        if self._data.get("calendar") is True:
            return (self._algorithm, self._unit, self._multiplier, self._data.get("time_zone", "UTC"))
        return (self._algorithm, self._unit.seconds * self._multiplier)

    def _unlimited(self) -> Iterator[Problem]:
        unit = self._data.get("unit")
        if self._unit is not None:
            yield self._error(codes.UNLIMITED, "what is unlimited has no unit", "unit", "delete one of the two")
        elif isinstance(unit, str):
            yield self._no_effect("unit", f"`{unit}` is no unit, and what is unlimited has none")
        for key in _COUNTED:
            if key in self._data:
                yield self._no_effect(key, "what is unlimited is not counted")

    def _units(self) -> Iterator[Problem]:
        unit = self._data.get("unit")
        if self._lacks("unit"):
            yield self._error(codes.UNIT, "the unit is missing here", None, "add `unit: minute`, say")
        elif isinstance(unit, str) and self._unit is None:
            yield self._error(codes.UNIT, f"`{unit}` is no unit", "unit", did_you_mean(unit.lower(), _UNITS))
        if self._lacks("requests_per_unit"):
            yield self._document.problem(
                codes.DENIES_ALL,
                "without `requests_per_unit` this limit denies every request",
                self._loc,
                key=True,
                fix="add it; `requests_per_unit: 0` says that it is meant",
                severity=Severity.WARNING,
            )
        if self._unit is not None and self._multiplier and self._multiplier * self._unit.seconds > LONGEST_S:
            yield self._error(codes.WINDOW, "the window is longer than 100 years", "unit_multiplier", "write less")

    def _lacks(self, key: str) -> bool:
        """Not where it stands there in another spelling, which is a problem of its own already."""
        unknown = [str(other) for other in self._data if other not in OneOfSeveralSpec.model_fields]
        return key not in self._data and nearest(key, unknown) is None

    def _calendar(self) -> Iterator[Problem]:
        zone = self._data.get("time_zone")
        if self._data.get("calendar") is not True:
            if isinstance(zone, str):
                yield self._error(
                    codes.WINDOW,
                    "only a calendar has a time zone",
                    "time_zone",
                    "add `calendar: true`, or delete it",
                )
            return
        if self._unit is not None and self._unit not in CALENDAR_UNITS:
            word = self._unit.name.lower()
            yield self._error(
                codes.WINDOW,
                f"a {word} is the same in every calendar",
                "calendar",
                "it is for days and longer units",
            )
        if self._algorithm != Algorithm.FIXED_WINDOW:
            yield self._error(
                codes.WINDOW,
                "only fixed windows go by a calendar",
                "calendar",
                "delete it, or `algorithm`",
            )
        if isinstance(zone, str) and zone and not _is_zone(zone):
            near = nearest(zone, available_timezones())
            fix = f"did you mean `{near}`?" if near else "write one such as `Europe/Berlin` or `UTC`"
            yield self._error(codes.TIME_ZONE, f"there is no time zone `{zone}`", "time_zone", fix)

    def _bucket(self) -> Iterator[Problem]:
        if "burst" in self._data and self._algorithm != Algorithm.TOKEN_BUCKET:
            yield self._error(
                codes.WINDOW,
                "only a token bucket has a burst",
                "burst",
                "add `algorithm: token_bucket`, or delete it",
            )
        elif "burst" in self._data and self._data.get("requests_per_unit") == 0:
            yield self._no_effect("burst", "the limit is 0, and denies every request")

    def _numbers(self) -> Iterator[Problem]:
        """What the counters cannot count."""
        requests, burst = _whole(self._data.get("requests_per_unit"), 0), _whole(self._data.get("burst"), 0)
        known = self._algorithm in list(Algorithm)
        if self._unit is None or not self._multiplier or requests is None or burst is None or not known:
            return
        try:
            Rule(requests, self._multiplier * self._unit.seconds, Algorithm(str(self._algorithm)), burst)
        except ValueError as error:
            yield self._error(codes.WINDOW, str(error), None, "write smaller numbers")

    def _replaces(self) -> Iterator[Problem]:
        replaces, name = self._data.get("replaces"), self._data.get("name")
        for index, entry in enumerate(replaces if isinstance(replaces, list) else ()):
            if isinstance(entry, dict) and name and entry.get("name") == name:
                yield self._document.problem(
                    codes.REPLACES_ITSELF,
                    f"the limit `{name}` replaces itself, so it would never be counted",
                    (*self._loc, "replaces", index, "name"),
                    fix="name another limit, or delete the entry",
                )

    def _incompatible(self) -> Iterator[Problem]:
        calendar, charges = self._data.get("calendar") is True, self._data.get("charge_denied") is not False
        for key, why in compatible.reasons(self._algorithm, self._multiplier, calendar, charges):
            yield self._error(codes.INCOMPATIBLE, why, key, compatible.FIX)

    def _no_effect(self, key: str, why: str) -> Problem:
        return self._document.problem(
            codes.NO_EFFECT,
            f"`{key}` changes nothing here: {why}",
            (*self._loc, key),
            key=True,
            fix="delete the key",
            severity=Severity.WARNING,
        )

    def _error(self, code: Code, message: str, key: str | None, fix: str) -> Problem:
        loc: Loc = self._loc if key is None else (*self._loc, key)
        return self._document.problem(
            code, message, loc, key=key is None or key not in ("unit", "time_zone"), fix=fix
        )


_COUNTED = (
    "requests_per_unit", "unit_multiplier", "algorithm", "burst", "calendar", "time_zone", "charge_denied",
    "on_store_failure",
)  # fmt: skip


def _whole(value: object, absent: int) -> int | None:
    """None for what is no number."""
    if value is None:
        return absent
    return value if type(value) is int and value >= 0 else None


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
