"""One key of the Lighthouse: its text to what it says, or all its problems. Nothing is looked up yet.

A key with an error is not taken (its last good version serves on), one that is merely odd is, with a warning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pydantic import BaseModel

from discovery.lighthouse import codes
from discovery.lighthouse.model import (
    BalancerV1Value,
    BalancerV2Value,
    DiscoveryValue,
    TargetSpec,
    unknown_keys,
)
from mesh.service import Protocol
from operator_files import codes as file_codes
from operator_files import yaml
from operator_files.last_good import Reading
from operator_files.problem import Code, Problem, Severity, in_order
from operator_files.validate import did_you_mean, validate
from operator_files.yaml import Document, Loc

_WHOLE: Final = 100

M = TypeVar("M", bound=BaseModel)
Content = bytes | str | OSError


@dataclass(frozen=True, slots=True)
class Target:
    """A stack, and its share among its neighbours."""

    stack: str
    port: int
    weight: int


@dataclass(frozen=True, slots=True)
class Dependency:
    """A port of a service that the caller may dial. `loc` is the route's place in the key."""

    namespace: str
    service: str
    port_name: str
    port: int
    protocol: Protocol
    targets: tuple[Target, ...]
    loc: Loc = field(compare=False)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All of a caller, in the order in which they were written."""

    namespace: str
    domain: str
    routes: tuple[Dependency, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A listener of a load balancer: in front of `stack` (version 1), or of `service` and its `major` version (2)."""

    port: int
    label: str
    loc: Loc = field(compare=False)
    name: str = ""
    stack: str = ""
    service: str = ""
    major: int = 0


Entries = tuple[Entry, ...]


def parse_discovery(content: Content, file: str) -> Reading[Dependencies]:
    """What `lighthouse/discovery/v1/STACK` says; `file` is the name that problems show."""
    reader = _Reader(content, file)
    value = reader.value(DiscoveryValue)
    return reader.reading(None if value is None else reader.dependencies(value))


def parse_v1(content: Content, file: str) -> Reading[Entries]:
    """What `nelson/loadbalancers/v1/STACK` says."""
    reader = _Reader(content, file)
    value = reader.value(BalancerV1Value)
    if value is None:
        return reader.reading(None)
    return reader.reading(
        reader.once(
            Entry(spec.frontend_port, spec.port_label, (index,), spec.frontend_name, spec.backend_stack)
            for index, spec in enumerate(value.root)
        )
    )


def parse_v2(content: Content, file: str) -> Reading[Entries]:
    """What `nelson/loadbalancers/v2/STACK` says."""
    reader = _Reader(content, file)
    value = reader.value(BalancerV2Value)
    if value is None:
        return reader.reading(None)
    return reader.reading(
        reader.once(
            Entry(spec.frontend_port, spec.port_label, (index,), service=spec.service_name, major=spec.major_version)
            for index, spec in enumerate(value.root)
        )
    )


V = TypeVar("V")


class _Reader:
    """A key on its way to its value; `_problems` gathers what there is to say about it."""

    def __init__(self, content: Content, file: str) -> None:
        self._problems: list[Problem] = []
        self._document: Document | None = None
        self._text = ""
        if isinstance(content, OSError):
            reason = content.strerror or str(content)
            self._problems.append(
                Problem(file_codes.UNREADABLE.id, f"the key cannot be read: {reason[:1].lower()}{reason[1:]}", file)
            )
            return
        self._text = content if isinstance(content, str) else content.decode(errors="replace")
        document = yaml.parse(content, file)
        if isinstance(document, Problem):
            self._problems.append(document)
        else:
            self._document = document

    def value(self, model: type[M]) -> M | None:
        """The key by its model. Unknown keys are warnings."""
        if self._document is None:
            return None
        value, problems = validate(model, self._document)
        self._problems += problems
        for loc, known in unknown_keys(model, self._document.data):
            said = f"the key `{loc[-1]}` is not known here, and is passed over"
            self._say(codes.UNKNOWN_KEY, said, loc, did_you_mean(str(loc[-1]), known), key=True)
        return value

    def reading(self, value: V | None) -> Reading[V]:
        problems = in_order(self._problems)
        has_error = any(problem.is_error for problem in problems)
        return Reading(self._text, None if has_error else value, problems)

    def dependencies(self, value: DiscoveryValue) -> Dependencies:
        places: dict[tuple[str, str, str], tuple[Loc, list[TargetSpec]]] = {}
        for at, namespace in enumerate(value.namespaces):
            for index, route in enumerate(namespace.routes):
                loc = ("namespaces", at, "routes", index)
                key = (namespace.name, route.service, route.port)
                if key in places:
                    said = f"there is another route of `{route.service}` port `{route.port}` in `{namespace.name}`"
                    self._say(codes.TWICE, said, (*loc, "service"), "write all targets into one")
                    places[key][1].extend(route.targets)
                else:
                    places[key] = loc, list(route.targets)
        routes = (self._dependency(key, loc, targets) for key, (loc, targets) in places.items())
        return Dependencies(value.default_namespace, value.domain, tuple(routes))

    def once(self, entries: Iterator[Entry]) -> Entries:
        """Without entries that say nothing new. One port in front of two services is an error."""
        kept: list[Entry] = []
        for entry in entries:
            beside = [other for other in kept if other.port == entry.port]
            if entry in beside:
                self._say(codes.TWICE, "this entry is there already", entry.loc, "delete it")
            elif any((other.service, other.major, other.label) != _behind(entry) for other in beside):
                said = f"the port {entry.port} is in front of something else already"
                self._refuse(codes.CLASH, said, (*entry.loc, "frontend_port"), "give it another port")
            else:
                kept.append(entry)
        return tuple(kept)

    def _dependency(self, key: tuple[str, str, str], loc: Loc, specs: Sequence[TargetSpec]) -> Dependency:
        namespace, service, port_name = key
        weights: dict[tuple[str, int], int] = {}
        for spec in specs:
            if (spec.stack, spec.port) in weights:
                said = f"the stack `{spec.stack}` comes twice; its weights are summed"
                self._say(codes.TWICE, said, (*loc, "targets"), "write it once")
            weights[spec.stack, spec.port] = weights.get((spec.stack, spec.port), 0) + spec.weight
        self._check_weights(sum(weights.values()), (*loc, "targets"))
        first = specs[0]
        if odd := next((spec for spec in specs if (spec.port, spec.protocol) != (first.port, first.protocol)), None):
            said = f"`{odd.stack}` has {_port(odd)}, and `{first.stack}` has {_port(first)}, which is what is dialled"
            self._say(codes.SEVERAL_PORTS, said, (*loc, "targets"))
        targets = tuple(Target(stack, port, weight) for (stack, port), weight in weights.items())
        return Dependency(namespace, service, port_name, first.port, first.protocol, targets, loc)

    def _check_weights(self, total: int, loc: Loc) -> None:
        if total == 0:
            self._refuse(codes.WEIGHTS, "no target has a weight", loc, "give one of them a weight of 1 or more")
        elif total != _WHOLE:
            self._say(codes.SUM, f"the weights sum to {total}, not to {_WHOLE}; each is taken as its share", loc)

    def _say(self, code: Code, message: str, loc: Loc, fix: str = "", *, key: bool = False) -> None:
        assert self._document is not None
        self._problems.append(self._document.problem(code, message, loc, fix=fix, key=key, severity=Severity.WARNING))

    def _refuse(self, code: Code, message: str, loc: Loc, fix: str) -> None:
        assert self._document is not None
        self._problems.append(self._document.problem(code, message, loc, fix=fix))


def _behind(entry: Entry) -> tuple[str, int, str]:
    return entry.service, entry.major, entry.label


def _port(spec: TargetSpec) -> str:
    word = {Protocol.HTTP1: "http"}.get(spec.protocol, str(spec.protocol))
    return f"port {spec.port} ({word})"
