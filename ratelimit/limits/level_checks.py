"""What the descriptors of one level have against each other: doubles, and what can never be met."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from operator_files.problem import Problem, Severity
from operator_files.yaml import Document, Loc
from ratelimit.limits import codes
from ratelimit.limits.pattern import Pattern, is_pattern, may_meet

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """A descriptor whose key and value can be told."""

    key: str
    value: str
    loc: _Path

    @property
    def word(self) -> str:
        return f"{self.key}_{self.value}" if self.value else self.key

    @property
    def place(self) -> _Path:
        return (*self.loc, "value" if self.value else "key")


def level_problems(document: Document, descriptors: Sequence[object], loc: _Path) -> Iterator[Problem]:
    """Of the descriptors of one level, without what is in them."""
    level = _Level(document)
    found = [_Found(*said, (*loc, index)) for index, data in enumerate(descriptors) if (said := _said(data))]
    firsts: dict[tuple[str, str], _Found] = {}
    for descriptor in found:
        first = firsts.setdefault((descriptor.key, descriptor.value), descriptor)
        if first is not descriptor:
            yield level.duplicate(descriptor, first)
    distinct = list(firsts.values())
    yield from level.key_patterns(distinct)
    yield from level.unreachable(distinct)
    yield from level.taken_for_another(distinct)


def _said(data: object) -> tuple[str, str] | None:
    if not isinstance(data, dict):
        return None
    key, value = data.get("key"), data.get("value", "")
    return (key, value) if isinstance(key, str) and key and isinstance(value, str) else None


class _Level:
    def __init__(self, document: Document) -> None:
        self._document = document

    def duplicate(self, second: _Found, first: _Found) -> Problem:
        value = f" with the value `{second.value}`" if second.value else ""
        return self._document.problem(
            codes.DUPLICATE,
            f"the key `{second.key}`{value} is already on line {self._line(first)}",
            second.place,
            fix="put the two together; several limits of one descriptor go into `rate_limits`",
        )

    def key_patterns(self, found: Sequence[_Found]) -> Iterator[Problem]:
        for one in found:
            if is_pattern(one.key):
                yield self._warning(
                    codes.KEY_PATTERN.id,
                    f"the pattern `{one.key}` matches keys only; envoyproxy/ratelimit matches key and value together "
                    f"with `{one.word}`",
                    (*one.loc, "key"),
                    "write the keys out; the `*` belongs in the value",
                )

    def unreachable(self, found: Sequence[_Found]) -> Iterator[Problem]:
        """A pattern, or a key alone, after a pattern that takes all of it. Exact values are always met first."""
        patterns: dict[str, list[_Found]] = {}
        for one in found:
            if is_pattern(one.value) and not is_pattern(one.key):
                earlier = patterns.setdefault(one.key, [])
                if taker := next((other for other in earlier if Pattern(other.value).covers(one.value)), None):
                    yield self._unreachable(one, taker)
                else:
                    earlier.append(one)
        for one in found:
            if not one.value and one.key in patterns:
                taker = next((other for other in patterns[one.key] if not other.value.strip("*")), None)
                if taker is not None:
                    yield self._unreachable(one, taker)

    def taken_for_another(self, found: Sequence[_Found]) -> Iterator[Problem]:
        """Pairs of keys `a` and `a_b`: one text has them both where key and value are joined with `_`."""
        by_key: dict[str, list[_Found]] = {}
        for one in found:
            by_key.setdefault(one.key, []).append(one)
        for key, longer in by_key.items():
            for end in (index for index, char in enumerate(key) if char == "_"):
                shorter, rest = by_key.get(key[:end], ()), key[end + 1 :]
                pair = next(((one, other) for one in shorter for other in longer if _alike(one, other, rest)), None)
                if pair is not None:
                    yield self._told_apart(*pair)

    def _told_apart(self, one: _Found, other: _Found) -> Problem:
        if one.word == other.word:
            earlier, later = sorted((one, other), key=lambda found: found.loc[-1])
            what = f"refuses `{later.word}` as a double of"
        else:
            earlier, later, what = one, other, f"may take requests for `{other.key}` for those of"
        return self._warning(
            codes.OTHERWISE_THERE.id,
            f"envoyproxy/ratelimit {what} `{earlier.word}` on line {self._line(earlier)}; here they are told apart",
            later.place,
            "nothing needs mending, unless both read this file",
        )

    def _unreachable(self, one: _Found, taker: _Found) -> Problem:
        what = f"the pattern `{one.value}`" if one.value else f"the key `{one.key}` alone"
        why = "comes first" if one.value else "takes any value"
        return self._warning(
            codes.UNREACHABLE.id,
            f"{what} is never met: `{taker.value}` on line {self._line(taker)} {why}",
            one.place,
            "move it up, or delete it" if one.value else "delete one of the two",
        )

    def _line(self, one: _Found) -> int:
        return self._document.at(one.place).line

    def _warning(self, code: str, message: str, loc: Loc, fix: str) -> Problem:
        mark = self._document.at(loc)
        return Problem(
            code, message, self._document.file, mark.line, mark.column, mark.width, Severity.WARNING, fix,
            self._document.line(mark.line),
        )  # fmt: skip


def _alike(one: _Found, other: _Found, rest: str) -> bool:
    """Whether joined texts of `other`, whose key is `one`'s, `_` and `rest`, may be of `one` too."""
    if not one.value:
        return False
    return may_meet(one.value, f"{rest}_{other.value or '*'}") or (not other.value and one.value == rest)
