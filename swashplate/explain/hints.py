"""Why a host may be unknown to a node, and what it may have been meant to be."""

from collections.abc import Iterable, Iterator

from mesh.caller import Caller
from mesh.service import ServiceName
from operator_files.validate import nearest
from swashplate.explain.request import Request
from swashplate.explain.wire import Wire, virtual_hosts
from xds.resources.snapshot import Snapshot
from xds.translate.callers.names import full_name
from xds.translate.ports import CalledPort
from xds.translate.subject import Subject


def hints(request: Request, view: Snapshot, wire: Wire) -> Iterator[str]:
    """Sentences for whoever asked for a host that is nobody's."""
    name, _, number = request.host.lower().partition(":")
    short, _, rest = name.partition(".")
    namespace = rest.partition(".")[0]
    known = wire.mesh.services.keys() | wire.mesh.routes.keys()
    same = sorted(found for found in known if found.name == short and namespace in ("", found.namespace))
    for found in same:
        yield from _of_namesake(wire.subject(found), number, is_short=not rest)
    if not same:
        words = {found.within(wire.namespace) for found in known}
        words |= {domain for host in virtual_hosts(view) for domain in host.claims if ":" not in domain}
        near = nearest(name, words)
        yield f"did you mean {near}?" if near else "`swashplate explain endpoint` tells what is discovered, and where"


def hints_of_caller(caller: Caller) -> Iterator[str]:
    """For a node that is a caller: it sees its own hosts alone, whatever else there is."""
    names = sorted({full_name(host) for host in caller.hosts} | {host.service for host in caller.hosts})
    ports = [f"{one.name} (port {one.port})" for one in caller.frontends]
    has = "; ".join(
        part for part in (", ".join(names), "the load balancers " + ", ".join(ports) if ports else "") if part
    )
    yield (
        f"the node is the caller {caller.cluster} of {caller.source}, and sees nothing but what is there: "
        f"{has or 'nothing'}; for another name, add it there"
    )


def _of_namesake(subject: Subject, number: str, *, is_short: bool) -> Iterator[str]:
    name: ServiceName = subject.name
    numbers = [str(port.number) for port in subject.ports]
    other = [port for port in subject.ports if not port.protocol.is_http]
    if other and number in ("", *(str(port.number) for port in other)):
        yield from _not_http(subject, other)
    elif number and number not in numbers:
        yield f"{name} has no port {number}; its ports: {', '.join(numbers) or 'none'}"
    elif is_short:
        yield f"{name} is in the namespace {name.namespace}: from elsewhere, call it {name}"


def _not_http(subject: Subject, ports: Iterable[CalledPort]) -> Iterator[str]:
    listen = subject.file.listen if subject.file is not None else None
    for port in ports:
        if listen is not None and port.routed:
            where = f"it is offered at {listen[0]}:{listen[1]}"
        else:
            where = "a route file has to say `listen:` for it to be offered"
        yield f"port {port.number} of {subject.name} speaks {port.protocol}, which has no hosts: {where}"
