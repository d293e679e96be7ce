"""What is wrong with a limit file beyond its form, and what its author should know.

On the raw data, and leaving alone what has a wrong form, so that all problems of a file show at once.
"""

from collections.abc import Iterator, Mapping

from operator_files.problem import Code, Problem, Severity
from operator_files.yaml import Document, Loc
from ratelimit.limits import codes
from ratelimit.limits.level_checks import level_problems
from ratelimit.limits.limit_checks import limit_problems

Data = Mapping[str, object]


def problems_of(document: Document, *, shared_keys: bool) -> Iterator[Problem]:
    """Of the whole file. `shared_keys`: counters are shared with envoyproxy/ratelimit."""
    if isinstance(document.data, dict):
        yield from _Level(document, shared_keys).problems(document.data.get("descriptors"), ("descriptors",))
        if "domain" in document.data and document.data.get("descriptors") in (None, []):
            yield document.problem(
                codes.LIMITLESS,
                "there is no descriptor in this file",
                ("domain",),
                key=True,
                fix="is it cut off? Where no request is to be limited, delete the file",
                severity=Severity.WARNING,
            )


class _Level:
    """The same for every level of the file."""

    def __init__(self, document: Document, shared_keys: bool) -> None:
        self._document = document
        self._shared_keys = shared_keys

    def problems(self, descriptors: object, loc: tuple[str | int, ...]) -> Iterator[Problem]:
        if not isinstance(descriptors, list):
            return
        yield from level_problems(self._document, descriptors, loc)
        for index, descriptor in enumerate(descriptors):
            if isinstance(descriptor, dict):
                here = (*loc, index)
                yield from self._descriptor(descriptor, here)
                yield from self.problems(descriptor.get("descriptors"), (*here, "descriptors"))

    def _descriptor(self, data: Data, loc: tuple[str | int, ...]) -> Iterator[Problem]:
        yield from limit_problems(self._document, data, loc, shared_keys=self._shared_keys)
        if data.get("share_threshold") is True:
            if not any("*" in text for text in (data.get("key"), data.get("value")) if isinstance(text, str)):
                yield self._document.problem(
                    codes.SHARE_THRESHOLD,
                    "`share_threshold` is for patterns, and there is no `*` in the value",
                    (*loc, "share_threshold"),
                    key=True,
                    fix="write a pattern as the value, such as `*`, or delete the key",
                )
            elif not _has_limit(data):
                yield self._no_effect(loc, "share_threshold", "there is no limit here or below")
        if not _own_limit(data):
            for key in ("shadow_mode", "quota_mode", "detailed_metric", "metadata"):
                if data.get(key) not in (None, False, {}):
                    yield self._no_effect(loc, key, "this descriptor has no limit of its own")
        elif data.get("shadow_mode") is True and data.get("quota_mode") is True:
            yield self._no_effect(loc, "quota_mode", "a limit in shadow mode denies nothing")
        if data.get("value_to_metric") is True:
            yield from self._value_to_metric(data, loc)

    def _value_to_metric(self, data: Data, loc: tuple[str | int, ...]) -> Iterator[Problem]:
        value = data.get("value")
        if data.get("share_threshold") is True:
            yield self._no_effect(loc, "value_to_metric", "with `share_threshold` statistics tell the pattern")
        elif isinstance(value, str) and value and "*" not in value:
            yield self._no_effect(loc, "value_to_metric", "statistics tell a value that the file has anyway")
        elif not _has_limit(data):
            yield self._no_effect(loc, "value_to_metric", "there is no limit here or below")

    def _no_effect(self, loc: Loc, key: str, why: str) -> Problem:
        return self._warning(codes.NO_EFFECT, f"`{key}` changes nothing here: {why}", (*loc, key), "delete the key")

    def _warning(self, code: Code, message: str, loc: Loc, fix: str) -> Problem:
        return self._document.problem(code, message, loc, key=True, fix=fix, severity=Severity.WARNING)


def _own_limit(data: Data) -> bool:
    return "rate_limit" in data or "rate_limits" in data


def _has_limit(data: object) -> bool:
    """Here or below; what has a wrong form may be one."""
    if not isinstance(data, dict) or _own_limit(data):
        return True
    below = data.get("descriptors", [])
    return not isinstance(below, list) or any(_has_limit(child) for child in below)
