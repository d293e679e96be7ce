"""What a request asks for, worked out from its bytes: which limits its descriptors meet, and so which checks to make.

The same bytes are the same plan, for as long as the tree is the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from google.protobuf.message import DecodeError

from envoy_api import message_class
from ratelimit.core.held import NO_LIMIT, HeldLimit, HeldLimits, KeyNames, hold
from ratelimit.core.metadata import asked_for
from ratelimit.core.options import Options
from ratelimit.counters.check import MOST, Call, Check
from ratelimit.limits.limit import Entries, Limit, Match
from ratelimit.stats import LimitCounts, RateLimitStats
from ratelimit.unit import Unit


class Domain(Protocol):
    """Of a `DomainTree`, what is needed here."""

    def match(self, entries: Entries) -> Match | None: ...


class Tree(Protocol):
    """Of a `LimitTree`, what is needed here."""

    @property
    def domains(self) -> Mapping[str, Domain]: ...


class Asked(NamedTuple):
    """A check of a plan: the limit, the series it counts in, and the hits."""

    held: HeldLimit
    counts: LimitCounts
    hits: int


Part = bytes | tuple[Asked, ...]
"""What becomes of a descriptor: a status that is known already, or checks, the strictest of which answers."""


@dataclass(slots=True, eq=False)
class Plan:
    """`call` are the checks of `parts` in order, `asked` as well; `parts` has one for each descriptor.

    `refusal` is why there is nothing to decide. `plain`: at most one limit a descriptor, which denies when it is
    over, and the answer says nothing but statuses. `metadata` is what the answer's dynamic metadata has in any case.
    `unknown_domain` is the domain where no file has it. `size` is about what plan and request take, in bytes.
    """

    call: Call = ()
    asked: tuple[Asked, ...] = ()
    parts: tuple[Part, ...] = ()
    refusal: str = ""
    plain: bool = True
    metadata: bytes = b""
    unknown_domain: str = ""
    size: int = 400


_NOTHING: Final = frozenset[str]()
_new = tuple.__new__  # half the time of calling the classes
_MOST_OVERRIDES: Final = 10_000
_Request: Final = message_class("envoy.service.ratelimit.v3.RateLimitRequest")


_Found = tuple[HeldLimits, Entries, str, int]
"""What one descriptor meets: limits, the identity and stat of a Match, and its hits."""


_UNMET: Final[_Found] = HeldLimits((), ()), (), "", 0


class _RefusedError(Exception):
    """Why a request is INVALID_ARGUMENT."""


class Planner:
    """Makes plans by one version of the tree."""

    def __init__(self, tree: Tree, names: KeyNames, stats: RateLimitStats, options: Options) -> None:
        self._tree = tree
        self._names = names
        self._stats = stats
        self._options = options
        self._held: dict[tuple[Limit, ...], HeldLimits] = {}
        """By limits of the tree, which are of one domain."""
        self._overrides: dict[tuple[str, int, int], HeldLimits] = {}
        self._small = min(options.bounds.text, 4 * options.bounds.entries)
        """In no more bytes than that, nothing has room that is too large."""
        self._statuses_only = not (
            options.headers is not None
            or options.structured_headers
            or options.dynamic_metadata
            or options.would_deny_metadata
            or options.shadow_mode
            or options.quota_mode
        )

    def plan(self, data: bytes) -> Plan:
        """The plan of a request; one that is refused has a plan that says so."""
        try:
            return self._plan(data)
        except _RefusedError as refused:
            return Plan(refusal=str(refused), size=400 + len(data))

    def _plan(self, data: bytes) -> Plan:
        request = self._read(data)
        domain, descriptors = request.domain, request.descriptors
        known = self._tree.domains.get(domain)
        if known is None:
            statuses = (NO_LIMIT,) * len(descriptors)
            plan = Plan(parts=statuses, plain=self._statuses_only, unknown_domain=domain, size=400 + 2 * len(data))
            return self._said(plan, request)
        request_hits, replaced = request.hits_addend or 1, _NOTHING
        found: list[_Found] = []
        for number, descriptor in enumerate(descriptors):
            met = self._find(domain, known, number, descriptor, request_hits)
            found.append(met)
            if met[0].replaces:
                replaced |= met[0].replaces
        plan = self._asking(domain, found, replaced)
        # The names of counters are about as long, together, as the request.
        plan.size = 400 + 2 * len(data) + 60 * len(found) + 300 * len(plan.call)
        return self._said(plan, request) if self._options.dynamic_metadata else plan

    def _asking(self, domain: str, found: Sequence[_Found], replaced: frozenset[str]) -> Plan:
        """The plan of a request whose descriptors have met this."""
        tail_of, plain = self._names.tail, self._statuses_only
        call: list[Check] = []
        asked: list[Asked] = []
        parts: list[Part] = []
        for group, identity, stat, hits in found:
            if not group.held:
                parts.append(group.otherwise)
                continue
            tail, own_series, first = tail_of(identity), stat == group.path, len(asked)
            for held in group.held:
                if replaced and held.limit.name in replaced:
                    continue
                counts = held.counts if own_series else self._stats.dynamic(domain, stat + held.suffix)
                call.append(_new(Check, (held.head + tail, held.rule, hits)))
                asked.append(_new(Asked, (held, counts, hits)))
            if len(asked) > first:
                parts.append(tuple(asked[first:]))
                plain = plain and group.plain
            else:
                parts.append(group.otherwise)
        return Plan(tuple(call), tuple(asked), tuple(parts), "", plain)

    def _read(self, data: bytes) -> Any:
        bounds = self._options.bounds
        if len(data) > bounds.request_bytes:
            raise _RefusedError(f"the request has {len(data)} bytes, at most {bounds.request_bytes} are taken")
        try:
            request = _Request.FromString(data)
        except DecodeError:
            raise _RefusedError("the request is no envoy.service.ratelimit.v3.RateLimitRequest") from None
        if not request.domain:
            raise _RefusedError("the request has no domain")
        count = len(request.descriptors)
        if not count:
            raise _RefusedError("the request has no descriptors")
        if count > bounds.descriptors:
            raise _RefusedError(f"the request has {count} descriptors, at most {bounds.descriptors} are taken")
        if len(data) > self._small:
            for number, descriptor in enumerate(request.descriptors):
                self._check_size(number, descriptor)
        return request

    def _check_size(self, number: int, descriptor: Any) -> None:
        bounds, count = self._options.bounds, len(descriptor.entries)
        if count > bounds.entries:
            raise _RefusedError(f"descriptor {number} has {count} entries, at most {bounds.entries} are taken")
        for entry in descriptor.entries:
            length = max(len(entry.key), len(entry.value))
            if length > bounds.text:
                raise _RefusedError(
                    f"descriptor {number} has a key or value of {length} characters, at most {bounds.text} are taken"
                )

    def _find(self, domain: str, known: Domain, number: int, descriptor: Any, request_hits: int) -> _Found:
        entries: Entries = ()
        for entry in descriptor.entries:  # most have one or two
            entries += ((entry.key, entry.value),)
        hits = descriptor.hits_addend.value if descriptor.HasField("hits_addend") else request_hits
        hits = min(hits, MOST)
        if descriptor.is_negative_hits:
            hits = -hits
        if descriptor.HasField("limit"):
            return self._override(domain, number, entries, descriptor.limit, hits)
        match = known.match(entries)
        if match is None:
            return _UNMET
        limits, identity, stat = match
        held = self._held.get(limits)
        if held is None:
            held = self._held[limits] = self._hold(domain, limits)
        return held, identity, stat, hits

    def _hold(self, domain: str, limits: tuple[Limit, ...]) -> HeldLimits:
        return HeldLimits(
            limits,
            [
                hold(limit, domain, self._names, self._options, self._stats.configured(domain, limit.path))
                for limit in limits
                if not limit.unlimited
            ],
        )

    def _override(self, domain: str, number: int, entries: Entries, override: Any, hits: int) -> _Found:
        """A limit that the request brings itself: neither shadow nor quota, whatever the tree says."""
        asked = (domain, override.requests_per_unit, override.unit)
        held = self._overrides.get(asked)
        if held is None:
            try:
                limit = Limit(path="override", requests=override.requests_per_unit, unit=Unit(override.unit))
            except ValueError:
                raise _RefusedError(
                    f"descriptor {number} has a limit of its own in a unit that is unknown ({override.unit})"
                ) from None
            if len(self._overrides) >= _MOST_OVERRIDES:
                self._overrides.clear()
            made = hold(limit, domain, self._names, self._options, LimitCounts(domain, ""))
            held = self._overrides[asked] = HeldLimits((limit,), [made], override=True)
        return held, entries, ".".join([f"{key}_{value}" if value else key for key, value in entries]), hits

    def _said(self, plan: Plan, request: Any) -> Plan:
        """With what the answer says beside statuses."""
        if self._options.dynamic_metadata:
            plan.metadata = asked_for(request)
            plan.size += len(plan.metadata)
        return plan
