"""Whose rules a request meets at a node: a service's, a caller's dependency, or a load balancer's listener."""

from collections.abc import Callable
from dataclasses import dataclass

from mesh.caller import Caller, CallerHost, Frontend
from mesh.rule import BrokenRoutes, Rule
from mesh.service import Protocol
from mesh.split import Destination
from swashplate.explain.wire import Behind, Found, Wire
from xds.translate.callers.frontends import frontend_name
from xds.translate.callers.names import full_name, host_name
from xds.translate.callers.parts import rules_of
from xds.translate.ports import CalledPort
from xds.translate.subject import DEFAULT_RULE, Subject

Place = Callable[[str, int], str]
"""`file:line` of a route file's rule, by the file and the rule's index; the file alone where no line is known."""


@dataclass(frozen=True, slots=True)
class Taker:
    """A virtual host with its rules. `service` is how it is said; `notes` are what the rules alone do not tell."""

    found: Found
    service: str
    port: int
    protocol: Protocol
    rules: tuple[Rule, ...]
    source: str
    place: Callable[[int], str]
    behind: Callable[[Destination], Behind]
    broken: BrokenRoutes | None = None
    notes: tuple[str, ...] = ()
    patched: frozenset[str] = frozenset()
    """Names of rules that a patch changes; empty text: all of them."""


def of_service(found: Found, wire: Wire, place: Place) -> Taker | None:
    """The taker behind a service's virtual host; None where the host is nobody's."""
    owner = wire.owner(found.name)
    if owner is None:
        return None
    subject, port = owner
    file = subject.file if port.routed else None
    source = subject.routes.source if subject.routes is not None and port.routed else ""
    return Taker(
        found=found,
        service=subject.name.within(wire.namespace),
        port=port.number,
        protocol=port.protocol,
        rules=subject.rules(port),
        source=source,
        place=lambda index: place(source, index) if source else "",
        behind=lambda to: wire.behind(to, subject, port),
        broken=subject.broken,
        notes=_notes(subject, port),
        patched=frozenset(p.name for p in file.patches if p.target in ("route", "virtual_host"))
        if file
        else frozenset(),
    )


def _notes(subject: Subject, port: CalledPort) -> tuple[str, ...]:
    notes = []
    file = subject.file if port.routed else None
    if subject.broken is None and (file is None or [rule.name for rule in file.rules] in ([], [DEFAULT_RULE])):
        notes.append("no rule is written for this port: everything goes to all of its endpoints")
    if subject.service is None:
        notes.append(f"the service {subject.name} has not been discovered")
    return tuple(notes)


def of_caller(found: Found, caller: Caller, wire: Wire) -> Taker | None:
    """The taker behind a virtual host of a caller's view."""
    host = next((host for host in caller.hosts if host_name(host) == found.name), None)
    return _dependency(found, caller, host, full_name(host), wire) if host is not None else None


def of_frontend(caller: Caller, number: str, wire: Wire) -> Taker | None:
    """The taker behind a load balancer's port, where the caller is one and has it."""
    frontend = next((one for one in caller.frontends if str(one.port) == number), None)
    if frontend is None:
        return None
    return _dependency(Found(frontend_name(frontend), "*"), caller, frontend, f"frontend {frontend.name}", wire)


def _dependency(found: Found, caller: Caller, one: CallerHost | Frontend, said: str, wire: Wire) -> Taker:
    return Taker(
        found=found,
        service=said,
        port=one.port,
        protocol=one.protocol,
        rules=rules_of(one.split),
        source=caller.source,
        place=lambda _: caller.source,
        behind=wire.behind,
        notes=(f"the node is the caller {caller.cluster}: its routing is its own, and it sees nothing else",),
    )
