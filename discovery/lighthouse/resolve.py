"""From what the keys say to a caller: stacks become services that are known, load balancers' entries listeners."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from discovery.lighthouse import codes
from discovery.lighthouse.known import KnownServices
from discovery.lighthouse.parse import Dependencies, Dependency, Entries, Entry, Target
from discovery.lighthouse.stack import outwards, stack_of
from mesh.caller import Caller, CallerHost, Frontend
from mesh.service import Port, Protocol, ServiceName
from mesh.split import ServiceRef, Share, Split, apportion
from operator_files.problem import Code
from operator_files.yaml import Loc


class Kind(StrEnum):
    """The three kinds of keys, by what the store knows their texts by."""

    DISCOVERY = "lighthouse-discovery"
    V1 = "lighthouse-loadbalancers-v1"
    V2 = "lighthouse-loadbalancers-v2"


@dataclass(frozen=True, slots=True)
class Said:
    """All that the keys of one caller say; `source` is where."""

    cluster: str
    dependencies: Dependencies | None = None
    v1: Entries = ()
    v2: Entries = ()
    source: str = ""


class Note(NamedTuple):
    """A warning about a place in one of the caller's keys."""

    kind: Kind
    code: Code
    message: str
    loc: Loc
    fix: str = ""


class Resolved(NamedTuple):
    """`names`: the stacks and units that it was made of, so that it is made anew when one of them changes."""

    caller: Caller
    notes: tuple[Note, ...]
    names: frozenset[str]


def resolve(said: Said, known: KnownServices) -> Resolved:
    """The caller, with the services that are known now."""
    resolver = _Resolver(said, known)
    dependencies = said.dependencies
    caller = Caller(
        said.cluster,
        dependencies.namespace if dependencies is not None else known.default_namespace,
        dependencies.domain if dependencies is not None else "",
        tuple(map(resolver.host, dependencies.routes)) if dependencies is not None else (),
        tuple(sorted(resolver.frontends(), key=lambda frontend: frontend.port)),
        said.source,
    )
    return Resolved(caller, tuple(resolver.notes), frozenset(resolver.names))


class _Resolver:
    def __init__(self, said: Said, known: KnownServices) -> None:
        self.notes: list[Note] = []
        self.names: set[str] = set()
        self._said, self._known = said, known
        self._routes = said.dependencies.routes if said.dependencies is not None else ()
        self._home = said.dependencies.namespace if said.dependencies is not None else known.default_namespace

    def host(self, route: Dependency) -> CallerHost:
        split = self._split(Kind.DISCOVERY, route, route.targets, route.loc)
        return CallerHost(route.service, route.namespace, route.port_name, route.port, route.protocol, split)

    def frontends(self) -> Iterator[Frontend]:
        newer = {entry.port: entry for entry in self._said.v2}
        by_port: dict[int, list[Entry]] = {}
        for entry in self._said.v1:
            if entry.port not in newer:
                by_port.setdefault(entry.port, []).append(entry)
            elif not _is_of(entry.stack, newer[entry.port]):
                said = (
                    f"the port {entry.port} is in front of something else in version 2 of this load balancer's keys"
                )
                self._note(Kind.V1, codes.CLASH, said, entry.loc)
        for entries in by_port.values():
            yield self._frontend_v1(entries)
        for entry in self._said.v2:
            if (frontend := self._frontend_v2(entry)) is not None:
                yield frontend

    def _frontend_v1(self, entries: list[Entry]) -> Frontend:
        """One listener for all stacks of a port: by the weights of the caller's route to them, else equal parts."""
        first = entries[0]
        stacks = dict.fromkeys(entry.stack for entry in entries)
        for route in self._routes:
            targets = [target for target in route.targets if target.stack in stacks]
            if route.port_name == first.label and {target.stack for target in targets} == stacks.keys():
                if not any(target.weight for target in targets):
                    targets = [Target(target.stack, target.port, 1) for target in targets]
                return Frontend(
                    first.name, first.port, route.protocol, self._split(Kind.V1, route, targets, first.loc)
                )
        return self._equal_parts(Kind.V1, first, first.name, tuple(stacks))

    def _frontend_v2(self, entry: Entry) -> Frontend | None:
        name = f"{entry.service}-{entry.major}-{entry.label}"
        if (route := self._route_to(entry)) is not None:
            targets = [target for target in route.targets if _is_of(target.stack, entry)]
            if any(target.weight for target in targets):
                return Frontend(name, entry.port, route.protocol, self._split(Kind.V2, route, targets, entry.loc))
        self.names.add(entry.service)
        stacks = self._known.newest(entry.service, entry.major, self._home)
        if not stacks:
            said = f"no stack of `{entry.service}` with the major version {entry.major} is known"
            fix = "deploy one, or look whether its service is discovered"
            self._note(Kind.V2, codes.NO_STACK, said, entry.loc, fix)
            return None
        return self._equal_parts(Kind.V2, entry, name, stacks)

    def _route_to(self, entry: Entry) -> Dependency | None:
        """The caller's own route to what an entry names: from its namespace outwards, then in any."""
        routes = [route for route in self._routes if (route.service, route.port_name) == (entry.service, entry.label)]
        by_namespace = {route.namespace: route for route in reversed(routes)}
        near = (by_namespace[namespace] for namespace in outwards(self._home) if namespace in by_namespace)
        return next(near, routes[0] if routes else None)

    def _equal_parts(self, kind: Kind, entry: Entry, name: str, stacks: tuple[str, ...]) -> Frontend:
        """No route says a port: it is the stack's port with the entry's name, else its main one."""
        ports = {stack: self._port_named(stack, entry.label) for stack in stacks}
        refs = dict.fromkeys(self._ref(kind, stack, self._home, (entry.label,), entry.loc) for stack in stacks)
        protocol = next((port.protocol for port in ports.values() if port is not None), Protocol.HTTP1)
        return Frontend(name, entry.port, protocol, _by_weights(tuple(refs), (1,) * len(refs)))

    def _port_named(self, stack: str, label: str) -> Port | None:
        found = self._known.find(stack, self._home)
        return (found.service.port(label) or found.service.main_port) if found is not None else None

    def _split(self, kind: Kind, route: Dependency, targets: Iterable[Target], loc: Loc) -> Split:
        weights: dict[ServiceRef, int] = {}
        for target in targets:
            ref = self._ref(kind, target.stack, route.namespace, (target.port, route.port_name), loc)
            weights[ref] = weights.get(ref, 0) + target.weight
        return _by_weights(tuple(weights), tuple(weights.values()))

    def _ref(self, kind: Kind, stack: str, near: str, ports: tuple[int | str, ...], loc: Loc) -> ServiceRef:
        """The stack's service and the first of these ports that it has, else its main one.

        A stack that is not known is taken for one of the default namespace that is still to come.
        """
        self.names.add(stack)
        found = self._known.find(stack, near)
        if found is None:
            number = next((port for port in ports if isinstance(port, int)), None)
            return ServiceRef(ServiceName(self._known.default_namespace, stack), number)
        name = found.service.name
        if found.others:
            others = ", ".join(f"`{other}`" for other in found.others)
            said = f"the stack `{stack}` is known in `{name.namespace}`, which is used, and in {others}"
            self._note(kind, codes.AMBIGUOUS, said, loc, "have it discovered in one namespace")
        port = next((port for wanted in ports if (port := found.service.port(wanted)) is not None), None)
        return ServiceRef(name, port.number if port is not None else None)

    def _note(self, kind: Kind, code: Code, message: str, loc: Loc, fix: str = "") -> None:
        self.notes.append(Note(kind, code, message, loc, fix))


def _by_weights(refs: tuple[ServiceRef, ...], weights: tuple[int, ...]) -> Split:
    return Split(tuple(Share(ref, share) for ref, share in zip(refs, _shares(weights), strict=True)))


@lru_cache(maxsize=4096)
def _shares(weights: tuple[int, ...]) -> tuple[int, ...]:
    """As `Split.of_weights` has them. All callers of a service that is shifted have the same."""
    return tuple(apportion([Fraction(weight) for weight in weights]))


def _is_of(stack: str, entry: Entry) -> bool:
    """Whether a stack is one of those that an entry of version 2 names."""
    found = stack_of(stack)
    return found is not None and (found.unit, found.version.major) == (entry.service, entry.major)
