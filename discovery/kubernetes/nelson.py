"""Nelson's labels. Its deployments are Services called after their stack; and Services that carry the labels of its
proposal for routing on Kubernetes (getnelson/nelson, issue 77) form virtual services, split by their weights.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from discovery.kubernetes.graded import Refusal
from discovery.kubernetes.objects import Service, ServicePort
from discovery.kubernetes.protocols import TCP, protocol_of
from discovery.left_out import LeftOut, Reason
from mesh.rule import Forward, Rule, ServiceRoutes
from mesh.service import Labels, Port, Protocol, ServiceName
from mesh.service import Service as MeshService
from mesh.split import ServiceRef, Split

STACK: Final = "stackName"
_COPIED: Final = (STACK, "unitName", "version")
_SERVICE, _WEIGHT, _PORT, _PORT_NAME, _PROTOCOL = "service", "weight", "port", "portName", "protocol"
_MOST: Final = 1_000_000
_RULE: Final = "weights"
"""What the rule of a virtual service is called."""
_WORDS: Final = ("http", "http2", "h2c", "grpc", "https", "wss", "ws", "tls", "tcp", "udp")


class Virtual(NamedTuple):
    """A service that is a split over others. `routes` is None where no member can be sent anything."""

    service: MeshService
    routes: ServiceRoutes | None
    left_out: tuple[LeftOut, ...]


class _Member(NamedTuple):
    """What a Service's labels say: the virtual port that callers dial, and where its share of it goes."""

    port: Port
    to: ServiceRef
    weight: int
    instance: str


def stack_name(service: Service) -> str:
    """What the service is called: its stack, as Nelson names the Service itself."""
    return (service.metadata.labels or {}).get(STACK) or service.metadata.name


def stack_labels(service: Service) -> Labels:
    """What the Service says of all its endpoints."""
    labels = service.metadata.labels or {}
    return frozenset((key, labels[key]) for key in _COPIED if key in labels)


def virtual_name(service: Service) -> ServiceName | None:
    """The virtual service that a Service belongs to."""
    name = (service.metadata.labels or {}).get(_SERVICE)
    return ServiceName(service.metadata.namespace, name) if name else None


def virtual_service(name: ServiceName, members: Iterable[Service]) -> Virtual:
    """The virtual service of these Services, which all say that they belong to it.

    It has one port: the one that most of them say. A member with a label that says nothing useful has no share.
    """
    left: list[LeftOut] = []
    sound: list[_Member] = []
    for service in sorted(members, key=lambda service: service.metadata.name):
        member = _member(service)
        if isinstance(member, Refusal):
            left.append(LeftOut(_instance(service), "", 0, *member))
        else:
            sound.append(member)
    if not sound:
        return Virtual(MeshService(name), None, tuple(left))
    port = _most_said(sound)
    for member in sound:
        if member.port != port:
            why = (
                f"it says {_shown(member.port)}, and most of `{name.name}` say {_shown(port)}; make its labels agree"
            )
            left.append(LeftOut(member.instance, "", member.port.number, Reason.UNSUPPORTED, why))
    agreed = [member for member in sound if member.port == port]
    if not any(member.weight for member in agreed):
        why = f"all weights of `{name.name}` are 0, so its last split stays; give one a weight"
        left += (LeftOut(one.instance, "", port.number, Reason.WEIGHT_ZERO, why) for one in agreed)
    return Virtual(MeshService(name, (port,)), _routes(name, port, agreed), tuple(left))


def routes_of(name: ServiceName, port: int, split: Split) -> ServiceRoutes:
    """All requests to a virtual service's port go to its split."""
    return ServiceRoutes(name, port, rules=(Rule(_RULE, Forward(split)),), source="labels of Services")


def _routes(name: ServiceName, port: Port, members: Sequence[_Member]) -> ServiceRoutes | None:
    weights: dict[ServiceRef, int] = {}
    for member in members:
        weights[member.to] = weights.get(member.to, 0) + member.weight
    return routes_of(name, port.number, Split.of_weights(weights.items())) if any(weights.values()) else None


def _member(service: Service) -> _Member | Refusal:
    labels = service.metadata.labels or {}
    weight = _number(labels.get(_WEIGHT, ""), 0, _MOST)
    if weight is None:
        said = f"`{labels[_WEIGHT]}`" if _WEIGHT in labels else "missing"
        return _bad(f"its label `{_WEIGHT}` is {said}; set it to a whole number from 0 to {_MOST}")
    number = None
    if _PORT in labels and (number := _number(labels[_PORT], 1, 65_535)) is None:
        return _bad(f"its label `{_PORT}` is `{labels[_PORT]}`; set it to a number from 1 to 65535")
    word = labels.get(_PROTOCOL, "")
    if word and word.lower() not in _WORDS:
        return _bad(f"its label `{_PROTOCOL}` is `{word}`; set it to one of {', '.join(_WORDS)}")
    ports = sorted(service.spec.ports or (), key=lambda port: (port.name != "http", port.port))
    named = labels.get(_PORT_NAME, "")
    wanted = [port for port in ports if _is_wanted(port, named, number)]
    if not wanted:
        has = ", ".join(f"{port.port}{f' `{port.name}`' if port.name else ''}" for port in ports) or "none"
        why = f"its labels say {_said(named, number)}, and of its ports none is that; it has {has}"
        return Refusal(Reason.NO_PORT, why)
    target = wanted[0]
    speaks = protocol_of(TCP, word, "") if word else protocol_of(target.protocol, target.app_protocol, target.name)
    port = Port(named or target.name, number or target.port, speaks or Protocol.TCP)
    to = ServiceRef(ServiceName(service.metadata.namespace, stack_name(service)), target.name or target.port)
    return _Member(port, to, weight, _instance(service))


def _is_wanted(port: ServicePort, named: str, number: int | None) -> bool:
    if named and port.name:
        return port.name == named
    return number in (None, port.port)


def _most_said(members: Sequence[_Member]) -> Port:
    """The lowest of those that are said most often."""
    said = Counter(member.port for member in members)
    return min(said, key=lambda port: (-said[port], port.number, port.name, port.protocol))


def _number(text: str, least: int, most: int) -> int | None:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        return None
    return int(text) if least <= int(text) <= most else None


def _said(named: str, number: int | None) -> str:
    """The port of the labels."""
    return (
        " ".join(filter(None, ("port", str(number or ""), f"`{named}`" if named else "")))
        if named or number
        else "no port"
    )


def _shown(port: Port) -> str:
    return f"port {port.number}{f' `{port.name}`' if port.name else ''} ({port.protocol})"


def _bad(why: str) -> Refusal:
    return Refusal(Reason.BAD_LABEL, why)


def _instance(service: Service) -> str:
    return f"service {service.metadata.name}"
