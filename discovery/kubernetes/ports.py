"""The ports of a Service, and what the ports of its slices are to them."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from discovery.kubernetes.graded import Refusal
from discovery.kubernetes.objects import ServicePort, SlicePort
from discovery.kubernetes.protocols import TCP, UDP, protocol_of
from discovery.left_out import Reason
from mesh.service import Protocol

_TRANSPORTS: Final = (TCP, UDP, "SCTP")


class Planned(NamedTuple):
    """A port of the Service, and what it speaks or why it is not carried."""

    port: ServicePort
    fate: Protocol | Refusal

    @property
    def shown(self) -> str:
        """As a sentence names it."""
        return f"`{self.port.name}`" if self.port.name else str(self.port.port)

    @property
    def target(self) -> int:
        """The number behind it where nothing else says it."""
        target = self.port.target_port
        return target if isinstance(target, int) and target else self.port.port


Plan = Mapping[str, Planned]
"""By the port's name, which is what a slice's port has in common with it."""


def planned(ports: Iterable[ServicePort]) -> Plan:
    """A number with several transports is one port here, that of the first of TCP, UDP."""
    plan: dict[str, Planned] = {}
    taken: dict[int, str] = {}
    for port in sorted(ports, key=lambda port: (_order(port.protocol), port.port)):
        protocol = protocol_of(port.protocol, port.app_protocol, port.name)
        if protocol is None:
            why = f"{port.protocol} is not carried: Envoy proxies TCP and UDP"
            plan[port.name] = Planned(port, Refusal(Reason.UNSUPPORTED, why))
        elif port.port in taken:
            why = f"the Service's port {port.port} is {taken[port.port]} too, and only that is carried"
            plan[port.name] = Planned(port, Refusal(Reason.UNSUPPORTED, why))
        else:
            taken[port.port] = port.protocol
            plan[port.name] = Planned(port, protocol)
    return plan


def target_of(port: SlicePort, plan: Plan) -> tuple[int, Refusal | None]:
    """The number that a slice's port leads to, and why it is not used. A port without number is every port, says the
    API: then it is what the Service says."""
    transport = port.protocol or TCP
    there = plan.get(port.name or "")
    if there is None or there.port.protocol != transport:
        has = ", ".join(f"{one.shown} ({one.port.protocol})" for one in plan.values()) or "none"
        why = f"the Service has no {transport} port named `{port.name or ''}`, as the slice does; it has {has}"
        return port.port or 0, Refusal(Reason.NO_PORT, why)
    return port.port or there.target, there.fate if isinstance(there.fate, Refusal) else None


def lacking(there: Planned) -> Refusal:
    """Why an instance is not behind a port of the Service that its slices lack."""
    if isinstance(there.port.target_port, str):
        where = f"`{there.port.target_port}`, where the Service's port {there.shown} leads"
        return Refusal(Reason.NO_PORT, f"no container of it has a port named {where}; name it in the pod's spec")
    return Refusal(Reason.NO_PORT, f"none of its slices has the Service's port {there.shown}; add it to the slice")


def _order(transport: str) -> int:
    return _TRANSPORTS.index(transport) if transport in _TRANSPORTS else len(_TRANSPORTS)
