"""Why a descriptor of a request meets the limits that it meets, or none."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from operator_files.validate import nearest
from ratelimit.counters.check import Algorithm
from ratelimit.limits.effects import Circumstances, effects
from ratelimit.limits.limit import Entries, Limit, Match
from ratelimit.limits.pattern import Pattern, is_pattern
from ratelimit.limits.tree import DomainTree, LimitTree, Node

_SHOWN: Final = 5
"""Descriptors of a level that are named as not met, and names that there are instead; there may be thousands."""


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of the request at its level. `chosen` is the descriptor that it meets, as paths have it, with `place`
    (file:line) and the reason `why`; empty where it meets none. `others` are descriptors that it might have met, each
    with the reason why not."""

    entry: tuple[str, str]
    chosen: str = ""
    place: str = ""
    why: str = ""
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """`conclusion` is one sentence. `match` is None where there is no limit."""

    domain: str
    entries: Entries
    steps: tuple[Step, ...]
    conclusion: str
    match: Match | None = None

    def to_dict(self) -> Mapping[str, object]:
        """For JSON output."""
        return {
            "domain": self.domain,
            "entries": [{"key": key, "value": value} for key, value in self.entries],
            "steps": [
                {
                    "key": step.entry[0],
                    "value": step.entry[1],
                    "descriptor": step.chosen or None,
                    "place": step.place or None,
                    "why": step.why,
                    "others": [{"descriptor": name, "why": why} for name, why in step.others],
                }
                for step in self.steps
            ],
            "limits": self.limits(),
            "counter": [{"key": key, "value": value} for key, value in self.match.identity] if self.match else None,
            "conclusion": self.conclusion,
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"domain {self.domain}"
        for level, step in enumerate(self.steps):
            yield f"{'  ' * (level + 1)}{_shown(step.entry)}: {step.why}"
            for name, why in step.others:
                yield f"{'  ' * (level + 2)}not `{name}`: {why}"
        for limit in self._limits():
            yield f"limit {limit.path}: {said(limit)}{f' ({limit.place})' if limit.place else ''}"
        if self.match is not None and not all(limit.unlimited for limit in self.match.limits):
            yield f"counter {', '.join(_shown(entry) for entry in self.match.identity)}"
        yield self.conclusion

    def limits(self) -> list[Mapping[str, object]]:
        """What is met, for JSON output."""
        return [{"path": limit.path, "limit": said(limit), "place": limit.place} for limit in self._limits()]

    def _limits(self) -> tuple[Limit, ...]:
        return self.match.limits if self.match is not None else ()


@dataclass(frozen=True, slots=True)
class RequestExplanation:
    """Of all descriptors of a request, at least one. `effects` are sentences on all of its limits together."""

    descriptors: tuple[Explanation, ...]
    around: Circumstances
    effects: tuple[str, ...]

    def to_dict(self) -> Mapping[str, object]:
        """For JSON output: where there is one descriptor, its own keys and these."""
        each = [explanation.to_dict() for explanation in self.descriptors]
        first, *others = each
        limits = [limit for some in self.descriptors for limit in some.limits()]
        several = {"domain": first["domain"], "descriptors": each, "limits": limits}
        return {
            **(several if others else first),
            "effects": list(self.effects),
            "shadow_mode": self.around.shadow_mode,
            "quota_mode": self.around.quota_mode,
            "store_error": self.around.store_error or None,
        }

    def lines(self) -> Iterator[str]:
        """For people."""
        for number, explanation in enumerate(self.descriptors):
            yield from islice(explanation.lines(), 1 if number else 0, None)
        yield from self.effects


def explain_request(
    tree: LimitTree,
    domain: str,
    descriptors: Sequence[Entries],
    around: Circumstances,
    errors: Sequence[str] = (),
) -> RequestExplanation:
    """Follows each through the tree; none are one without entries. `errors`: sentences on files that speak of the
    domain."""
    found = tuple(explain(tree, domain, entries, errors) for entries in descriptors or ((),))
    known = tree.domains.get(domain)
    met = [each.match.limits if each.match is not None else () for each in found]
    if known is None:
        return RequestExplanation(found, around, ())
    return RequestExplanation(found, around, (*effects(known, met, around), *errors))


def explain(tree: LimitTree, domain: str, entries: Entries, errors: Sequence[str] = ()) -> Explanation:
    """Follows the entries through the tree."""
    found = tree.domains.get(domain)
    if found is None:
        return Explanation(domain, entries, (), why_unknown(tree, domain, errors))
    steps = tuple(_steps(found, entries))
    match = found.match(entries)
    return Explanation(domain, entries, steps, _conclusion(found, entries, match), match)


def why_unknown(tree: LimitTree, domain: str, errors: Sequence[str] = ()) -> str:
    """Why nothing is limited of a domain that the tree does not have."""
    if errors:
        return "; ".join(errors)
    near = nearest(domain, tree.domains.keys())
    hint = f"; did you mean `{near}`?" if near else _known("; there is", tree.domains)
    return f"no file describes the domain `{domain}`, so nothing is limited{hint}"


def said(limit: Limit) -> str:
    """A limit in words: `5 a minute`, `100 per 5 minutes as a token bucket of 20, shadow`."""
    if limit.unlimited:
        return "unlimited"
    unit = limit.unit.name.lower()
    article = "an" if unit == "hour" else "a"
    window = f"per {limit.multiplier} {unit}s" if limit.multiplier > 1 else f"{article} {unit}"
    words = f"{limit.requests} {window}"
    if limit.calendar is not None:
        words += f" of the calendar in {limit.calendar.zone}"
    if limit.algorithm is Algorithm.SLIDING_WINDOW:
        words += " as a sliding window"
    elif limit.algorithm is Algorithm.TOKEN_BUCKET:
        words += f" as a token bucket of {limit.burst or limit.requests}"
    flags = {
        "shadow": limit.shadow,
        "quota": limit.quota,
        "not charged when denied": not limit.charge_denied,
        f"{limit.on_store_failure} without the store": limit.on_store_failure is not None,
    }
    return ", ".join((words, *(flag for flag, holds in flags.items() if holds)))


def _steps(domain: DomainTree, entries: Entries) -> Iterator[Step]:
    node = domain.root
    for entry in entries:
        found = node.child(entry)
        if found is None:
            yield Step(entry, why=_why_none(node, entry), others=tuple(_not_met(node, entry, None)))
            return
        others = tuple(_not_met(node, entry, found))
        yield Step(entry, found.word, found.descriptor.place, _why(found, entry), others)
        node = found


def _why(found: Node, entry: tuple[str, str]) -> str:
    descriptor = found.descriptor
    place = f" ({descriptor.place})" if descriptor.place else ""
    if descriptor.value and (descriptor.key, descriptor.value) == entry:
        return f"meets `{found.word}` by its key and value{place}"
    if is_pattern(descriptor.value) or is_pattern(descriptor.key):
        return f"meets `{found.word}` by the pattern{place}"
    return f"meets `{found.word}` by its key, whatever the value{place}"


def _why_none(node: Node, entry: tuple[str, str]) -> str:
    children = node.descriptor.descriptors
    if not children:
        return "meets nothing: the file has no descriptors here, and the request goes on"
    key, value = entry
    keys = {child.key for child in children}
    if key not in keys:
        near = nearest(key, keys)
        return f"meets nothing: there is no key `{key}` here" + (
            f"; did you mean `{near}`?" if near else _known(", only", keys)
        )
    near = nearest(value, {child.value for child in children if child.key == key and not is_pattern(child.value)})
    values = {child.value for child in children if child.key == key}
    return f"meets nothing: no value of `{key}` here is `{value}`" + (
        f"; did you mean `{near}`?" if near else _known(", only", values)
    )


def _known(words: str, those: Collection[str]) -> str:
    """What there is instead."""
    if not those:
        return ""
    names = ", ".join(f"`{each}`" for each in sorted(those)[:_SHOWN])
    more = f" and {len(those) - _SHOWN} more" if len(those) > _SHOWN else ""
    return f"{words} {names}{more}"


def _not_met(node: Node, entry: tuple[str, str], found: Node | None) -> Iterator[tuple[str, str]]:
    """Patterns of the same key, and the key alone, which came into question."""
    key, value = entry
    chosen = found.descriptor if found is not None else None
    inexact = (child for child in node.descriptor.descriptors if child.key == key and child is not chosen)
    for child in islice((child for child in inexact if not child.value or is_pattern(child.value)), _SHOWN):
        if child.value and not Pattern(child.value).matches(value):
            yield child.word, f"`{value}` is not of the pattern `{child.value}`"
        elif found is not None:
            yield child.word, f"`{found.word}` comes before it"


def _conclusion(domain: DomainTree, entries: Entries, match: Match | None) -> str:
    if match is not None:
        if all(limit.unlimited for limit in match.limits):
            return "the request passes uncounted, because the limit says so"
        return "the request is counted" + (", and the strictest limit answers" if len(match.limits) > 1 else "")
    nodes = tuple(domain.walk(entries))
    if not entries:
        return "there is no limit, because the descriptor has no entries"
    if len(nodes) < len(entries):
        return f"there is no limit, because the entry {_shown(entries[len(nodes)])} meets nothing"
    if not nodes[-1].descriptor.descriptors:
        return "there is no limit, because the descriptor has none: its requests pass"
    return "there is no limit, because the request ends above the descriptors that have limits"


def _shown(entry: tuple[str, str]) -> str:
    key, value = entry
    return f"{key}={value}"
