"""A service's TCP listener, where its route file asks for one."""

from dataclasses import dataclass

from envoy_api import encode
from mesh.rule import Forward
from mesh.split import ServiceRef, Split
from xds.resources import types
from xds.resources.references import clusters_in
from xds.resources.resource import Resource
from xds.translate.finding import Code, Finding
from xds.translate.listeners import tcp_listener
from xds.translate.naming import EGRESS
from xds.translate.patches import PatchError, patched
from xds.translate.ports import CalledPort
from xds.translate.settings import Address
from xds.translate.subject import Subject
from xds.translate.transport import off_is_zero


@dataclass(frozen=True, slots=True)
class ListenerPart:
    """A listener before it is known whether the service gets its address."""

    address: Address
    resource: Resource


def service_listener(subject: Subject, findings: list[Finding]) -> ListenerPart | None:
    """The listener of the routed port, when that is tcp or tls and the file says `listen`."""
    address = subject.file.listen if subject.file else None
    offered = None
    for port in subject.ports:
        if port.protocol.is_http:
            if port.routed and address is not None:
                reason = f"listen is for tcp and tls services; port {port.number} is {port.protocol}"
                findings.append(Finding(subject.name, Code.NOT_APPLICABLE, reason))
        elif port.routed and address is not None:
            offered = port
        else:
            reason = f"port {port.number} is {port.protocol}: sidecars offer it only where a route file says `listen`"
            findings.append(Finding(subject.name, Code.NOT_OFFERED, reason))
    if offered is None or address is None:
        return None
    return ListenerPart(address, _listener(subject, offered, address, findings))


def _listener(subject: Subject, port: CalledPort, address: Address, findings: list[Finding]) -> Resource:
    everything = Split.all_to(ServiceRef(subject.name, port.number or None))
    splits = (rule.action.split for rule in subject.rules(port) if isinstance(rule.action, Forward))
    split = next(splits, everything)
    # A weight of zero is not valid in a TCP proxy, unlike in a route.
    shares = [(subject.cluster_of(port, to), share) for to, share in split.shares if share]
    name = f"{EGRESS}/{port.cluster}"
    idle = subject.policy.idle_timeout
    made = tcp_listener(name, address, "OUTBOUND", shares, None if idle is None else off_is_zero(idle))
    patches = subject.patches("listener")
    try:
        made = patched(made, patches)
    except PatchError as error:
        reason = f"the patch of listener {name} is left out: {error}"
        findings.append(Finding(subject.name, Code.PATCH_FAILED, reason))
    references = clusters_in(made) if patches else frozenset(cluster for cluster, _ in shares)
    return Resource(types.LISTENER, name, encode(made), references)
