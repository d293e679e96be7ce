"""Names of limits, and what replaces them, in the data of a file without errors."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from operator_files.problem import Problem, Severity
from operator_files.validate import nearest
from operator_files.yaml import Document
from ratelimit.limits import codes

_Path = tuple[str | int, ...]


class Names:
    """The names of one file, by where they stand."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._given: dict[str, list[_Path]] = defaultdict(list)
        self._replaced: dict[str, list[_Path]] = defaultdict(list)
        for limit, loc in _limits(document.data, ()):
            if name := limit.get("name"):
                self._given[name].append((*loc, "name"))
            for index, entry in enumerate(limit.get("replaces", ())):
                self._replaced[entry["name"]].append((*loc, "replaces", index, "name"))

    def twice(self) -> Iterator[Problem]:
        """Names that two limits have. Those of one descriptor may: then both are replaced together."""
        for name, (first, *others) in self._given.items():
            for loc in others:
                if _descriptor(loc) != _descriptor(first):
                    yield self._document.problem(
                        codes.NAME_TWICE,
                        f"the name `{name}` is on line {self._document.at(first).line} too: both are replaced as one",
                        loc,
                        fix="give each its own name, unless this is meant",
                        severity=Severity.WARNING,
                    )

    def wanted(self) -> Mapping[str, tuple[Problem, ...]]:
        """Names that are replaced and not given here, each with the warnings that hold unless another file has it."""
        absent = {name: places for name, places in self._replaced.items() if name not in self._given}
        return MappingProxyType(
            {name: tuple(self._unknown(name, loc) for loc in places) for name, places in absent.items()}
        )

    def _unknown(self, name: str, loc: _Path) -> Problem:
        near = nearest(name, self._given)
        return self._document.problem(
            codes.REPLACES_UNKNOWN,
            f"no limit of this domain has the name `{name}`, so nothing is replaced",
            loc,
            fix=f"did you mean `{near}`?" if near else f"write `name: {name}` into the limit that is meant",
            severity=Severity.WARNING,
        )


def _limits(data: Any, loc: _Path) -> Iterator[tuple[dict[str, Any], _Path]]:
    """Every limit at this place and below."""
    if "rate_limit" in data:
        yield data["rate_limit"], (*loc, "rate_limit")
    for index, limit in enumerate(data.get("rate_limits", ())):
        yield limit, (*loc, "rate_limits", index)
    for index, child in enumerate(data.get("descriptors", ())):
        yield from _limits(child, (*loc, "descriptors", index))


def _descriptor(loc: _Path) -> _Path:
    """The place of the descriptor that a limit's name belongs to."""
    return loc[:-3] if loc[-3] == "rate_limits" else loc[:-2]
