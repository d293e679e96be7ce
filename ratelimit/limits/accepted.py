"""What envoyproxy/ratelimit accepts without a word: taken for what it means there, and warned about.

It knows one set of keys for every place, and ignores those that mean nothing where they stand; null is for it as if
the key were not there; it takes every scalar for text where text is wanted; and it reads YAML 1.1.
"""

import re
from collections.abc import Mapping
from typing import Final

from operator_files.plain_data import core_scalar
from operator_files.problem import Code, Problem, Severity
from operator_files.yaml import Document, Loc
from ratelimit.limits import codes

_TEXT, _WHOLE, _FLAG, _ANY = "text", "whole number", "flag", "any"
_RATE_LIMIT: Final = {
    "unit": _TEXT, "requests_per_unit": _WHOLE, "unlimited": _FLAG, "name": _TEXT, "replaces": "replaces",
    "unit_multiplier": _WHOLE, "algorithm": _TEXT, "burst": _WHOLE, "calendar": _FLAG, "time_zone": _TEXT,
    "charge_denied": _FLAG, "on_store_failure": _TEXT,
}  # fmt: skip
_SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "file": {"domain": _TEXT, "name": _TEXT, "descriptors": "descriptor"},
    "descriptor": {
        "key": _TEXT, "value": _TEXT, "rate_limit": "rate_limit", "rate_limits": "one of several",
        "descriptors": "descriptor", "shadow_mode": _FLAG, "quota_mode": _FLAG, "detailed_metric": _FLAG,
        "value_to_metric": _FLAG, "share_threshold": _FLAG, "metadata": _ANY,
    },
    "rate_limit": _RATE_LIMIT,
    "one of several": {**_RATE_LIMIT, "shadow_mode": _FLAG},
    "replaces": {"name": _TEXT},
}  # fmt: skip
"""Mappings, and the mappings or lists of mappings in them."""

_OURS: Final = frozenset(
    {
        "rate_limits",
        "unit_multiplier",
        "algorithm",
        "burst",
        "calendar",
        "time_zone",
        "charge_denied",
        "on_store_failure",
    }
)
_THEIRS: Final = frozenset(key for shape in _SHAPES.values() for key in shape) - _OURS
_BELONGS: Final = {
    key: [place for place in ("file", "descriptor", "rate_limit") if key in _SHAPES[place]] for key in _THEIRS
}
_REQUIRED: Final = frozenset({("file", "domain"), ("descriptor", "key"), ("replaces", "name")})
_YES: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})
_NO: Final = frozenset({"n", "N", "no", "No", "NO", "off", "Off", "OFF"})
_NO_OCTAL = re.compile(r"0[0-9]*[89][0-9]*")
_OLD_WHOLE = re.compile(r"0[0-7_]+|0b[01_]+|[0-9][0-9_]*")


def take(document: Document) -> tuple[Problem, ...]:
    """Puts the document's data into the form that the model knows. All that was put right is a warning."""
    taker = _Taker(document)
    document.data = taker.part("file", document.data, ())
    return tuple(taker.warnings)


class _Taker:
    def __init__(self, document: Document) -> None:
        self.warnings: list[Problem] = []
        self._document = document

    def part(self, shape: str, data: object, loc: tuple[str | int, ...]) -> object:
        """A mapping of this shape, or a list of them; anything else is the model's to refuse."""
        if isinstance(data, list):
            return [self.part(shape, entry, (*loc, index)) for index, entry in enumerate(data)]
        if not isinstance(data, dict):
            return data
        known, kept = _SHAPES[shape], dict[str, object]()
        for key, value in data.items():
            here = (*loc, key)
            if key in known:
                if value is None and (shape, key) not in _REQUIRED:
                    self._no_value(key, here)
                else:
                    kept[key] = self._value(known[key], value, here)
            elif key in _THEIRS and shape != "one of several":
                self._misplaced(key, here)
            else:
                kept[key] = value
        return kept

    def _value(self, kind: str, value: object, loc: Loc) -> object:
        if kind in _SHAPES:
            return self.part(kind, value, tuple(loc))
        if kind == _TEXT:
            return self._text(value, loc)
        if kind == _ANY:
            return self._anything(value, loc)
        if kind == _FLAG and isinstance(value, str):
            return self._flag(value, loc)
        return self._whole(value, loc) if kind == _WHOLE and type(value) in (int, str) else value

    def _text(self, value: object, loc: Loc) -> object:
        if not isinstance(value, bool | int):
            return value
        written = self._document.written(loc)
        # The mark of an anchored scalar begins at its anchor.
        return written if written and core_scalar(written) == value else str(value).lower()

    def _flag(self, value: str, loc: Loc) -> object:
        if value not in _YES | _NO or self._document.written(loc)[:1] in ("", "'", '"'):
            return value
        return self._read_as(value in _YES, loc)

    def _whole(self, value: object, loc: Loc) -> object:
        written = self._document.written(loc)
        if _NO_OCTAL.fullmatch(written):
            return written  # a fraction in YAML 1.1, and refused as one is
        means = _old_whole(written)
        return value if means is None or means == value else self._read_as(means, loc)

    def _read_as(self, means: object, loc: Loc) -> object:
        """What YAML 1.1 reads as a truth value or a number, and YAML 1.2 as text or as another number."""
        shown = str(means).lower()
        self._warn(codes.YAML_1_1, f"this is taken for {shown}, as in YAML 1.1", loc, f"write `{shown}`")
        return means

    def _anything(self, value: object, loc: Loc) -> object:
        if isinstance(value, dict):
            return {key: self._anything(inner, (*loc, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._anything(inner, (*loc, index)) for index, inner in enumerate(value)]
        return self._flag(value, loc) if isinstance(value, str) else value

    def _no_value(self, key: str, loc: Loc) -> None:
        what = "there is no value here" + (", so this is no limit" if key == "rate_limit" else "")
        self._warn(codes.NO_VALUE, what, loc, "write one, or delete the key")

    def _misplaced(self, key: str, loc: Loc) -> None:
        places = {"file": "at the top of the file", "descriptor": "beside `key`", "rate_limit": "in `rate_limit`"}
        where = " or ".join(places[place] for place in _BELONGS[key])
        self._warn(codes.MISPLACED, f"`{key}` means nothing here and is ignored", loc, f"it belongs {where}")

    def _warn(self, code: Code, message: str, loc: Loc, fix: str) -> None:
        self.warnings.append(self._document.problem(code, message, loc, fix=fix, key=True, severity=Severity.WARNING))


def _old_whole(written: str) -> int | None:
    """What YAML 1.1 (and Go) makes of digits: underscores part them, and a zero before them means octal."""
    if not _OLD_WHOLE.fullmatch(written):
        return None
    digits = written.replace("_", "")
    try:
        return int(digits, 2 if digits.startswith("0b") else 8 if digits.startswith("0") and len(digits) > 1 else 10)
    except ValueError:
        return None
