"""From a checked form to mesh values: what a file left out is filled in, and what contradicts itself is refused."""

from collections.abc import Iterator
from typing import Final, Protocol

from discovery.address import Address
from discovery.files import codes
from discovery.files.model import EndpointSpec, PortSpec, RotorCluster, ServiceSpec
from discovery.port_protocol import protocol_of_port_name
from mesh import service as mesh
from operator_files.problem import Code
from operator_files.yaml import Loc

DEFAULT_PORT: Final = 80
"""What callers dial when a file says nothing: the port that a bare HTTP URL means."""


class Refuse(Protocol):
    """Notes a problem at a place inside the service."""

    def __call__(self, code: Code, message: str, loc: Loc, fix: str) -> None: ...


def service_of(spec: ServiceSpec, default_namespace: str, refuse: Refuse) -> mesh.Service:
    """The service that a spec describes; whatever was refused makes the value meaningless."""
    ports = _ports(spec, refuse)
    behind: dict[int, dict[tuple[str, int], mesh.Endpoint]] = {port.number: {} for port in ports}
    for index, form in enumerate(spec.endpoints):
        loc = ("endpoints", index)
        endpoint = form if isinstance(form, EndpointSpec) else EndpointSpec.model_construct(address=form)
        for number, target in _targets(endpoint, ports, loc, refuse):
            made = _endpoint(endpoint, target)
            if (made.address, made.port) in behind[number]:
                refuse(*_twice(made), loc, "write it once")
            behind[number][made.address, made.port] = made
    return mesh.Service(
        mesh.ServiceName(spec.namespace or default_namespace, spec.name),
        tuple(
            mesh.Port(
                port.name,
                port.number,
                mesh.Protocol(port.protocol) if port.protocol else protocol_of_port_name(port.name),
                tuple(behind[port.number][key] for key in sorted(behind[port.number])),
            )
            for port in sorted(ports, key=lambda port: port.number)
        ),
        tuple(sorted(set(spec.addresses))),
    )


def rotor_service_of(cluster: RotorCluster, namespace: str, refuse: Refuse) -> mesh.Service:
    """The service that one of Rotor's clusters is."""
    endpoints: dict[tuple[str, int], mesh.Endpoint] = {}
    for index, instance in enumerate(cluster.instances):
        labels = {item.key: item.value for item in instance.metadata}
        if len(labels) != len(instance.metadata):
            refuse(codes.DUPLICATE_LABEL, "a metadata key comes twice", ("instances", index, "metadata"), "keep one")
        made = mesh.Endpoint(instance.host, instance.port, labels=frozenset(labels.items()))
        if (made.address, made.port) in endpoints:
            refuse(*_twice(made), ("instances", index), "write it once")
        endpoints[made.address, made.port] = made
    port = mesh.Port("", DEFAULT_PORT, endpoints=tuple(endpoints[key] for key in sorted(endpoints)))
    return mesh.Service(mesh.ServiceName(namespace, cluster.cluster), (port,))


def _ports(spec: ServiceSpec, refuse: Refuse) -> list[PortSpec]:
    if spec.ports is None:
        return [PortSpec.model_construct(number=spec.port or DEFAULT_PORT, protocol=spec.protocol)]
    for key, written in (("port", spec.port), ("protocol", spec.protocol)):
        if written is not None:
            refuse(codes.PORT, f"`{key}` is the short form of `ports`", (key,), "write it in `ports` only")
    seen: set[str] = set()
    for index, port in enumerate(spec.ports):
        # One set for both: an endpoint names a port by either.
        for key, said in (("number", str(port.number)), ("name", port.name)):
            if said and said in seen:
                refuse(codes.DUPLICATE_PORT, f"there is another port `{said}`", ("ports", index, key), "rename it")
            seen.add(said)
    return list(spec.ports)


def _targets(endpoint: EndpointSpec, ports: list[PortSpec], loc: Loc, refuse: Refuse) -> Iterator[tuple[int, int]]:
    """(number of the service's port, port of the endpoint) for what an endpoint serves."""
    in_address = endpoint.address.port
    if in_address is not None and endpoint.port is not None:
        refuse(codes.PORT, "the port is in `address` already", (*loc, "port"), "write it once")
    said = in_address if in_address is not None else endpoint.port
    if endpoint.ports is not None:
        if said is not None:
            refuse(codes.PORT, "the endpoint has a port and `ports`", loc, "write `ports` only")
        yield from _mapped(endpoint.ports, ports, loc, refuse)
    elif said is None:
        yield from ((port.number, port.target or port.number) for port in ports)
    elif len(ports) > 1:
        first = ports[0].name or ports[0].number
        refuse(
            codes.PORT,
            f"the service has {len(ports)} ports, so which of them is {said}?",
            loc,
            f"write `ports: {{{first}: {said}, ...}}`",
        )
    else:
        yield ports[0].number, said


def _mapped(wanted: dict[str, int], ports: list[PortSpec], loc: Loc, refuse: Refuse) -> Iterator[tuple[int, int]]:
    known = {key: port.number for port in ports for key in (str(port.number), port.name) if key}
    done: set[int] = set()
    for key, target in wanted.items():
        if key not in known:
            has = ", ".join(f"`{port.name or port.number}`" for port in ports)
            refuse(codes.PORT, f"the service has no port `{key}`", (*loc, "ports", key), f"it has {has}")
        elif known[key] in done:
            refuse(codes.PORT, f"the port `{key}` is already here", (*loc, "ports", key), "write it once")
        else:
            done.add(known[key])
            yield known[key], target


def _endpoint(spec: EndpointSpec, port: int) -> mesh.Endpoint:
    address: Address = spec.address
    return mesh.Endpoint(
        address.host,
        port,
        spec.weight,
        mesh.Health(spec.health),
        mesh.Locality(spec.region, spec.zone, spec.sub_zone),
        frozenset(spec.labels.items()),
        spec.node,
        tuple(sorted(set(spec.other_addresses) - {address.host})),
    )


def _twice(endpoint: mesh.Endpoint) -> tuple[Code, str]:
    return codes.DUPLICATE_ENDPOINT, f"`{endpoint.address}` port {endpoint.port} is already behind this port"
