"""Values as Nelson writes them, and services as a registry has them."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mesh.service import Endpoint, Port, Protocol, Service, ServiceName

OLD, NEW = "howdy-http--1-0-388--aeiq8irl", "howdy-http--1-0-389--bb12cc34"
DISCOVERY, V1, V2 = (
    "consul:lighthouse/discovery/v1/",
    "consul:nelson/loadbalancers/v1/",
    "consul:nelson/loadbalancers/v2/",
)


def target(stack: str, weight: int, port: int = 9000, protocol: str = "http") -> dict[str, Any]:
    return {"stack": stack, "port": port, "protocol": protocol, "weight": weight}


def route(*targets: dict[str, Any], service: str = "howdy-http", port: str = "default") -> dict[str, Any]:
    return {"service": service, "port": port, "targets": list(targets)}


def discovery(default: str = "dev", domain: str = "your.consul-tld.com", **namespaces: list[dict[str, Any]]) -> str:
    """The value of a caller with these routes; in a keyword's name `__` is a namespace's `/`."""
    blocks = [{"name": name.replace("__", "/"), "routes": routes} for name, routes in namespaces.items()]
    return json.dumps({"defaultNamespace": default, "domain": domain, "namespaces": blocks})


def service(
    name: str,
    namespace: str = "default",
    *ports: tuple[str, int],
    protocol: Protocol = Protocol.HTTP1,
    empty: bool = False,
) -> Service:
    """With one endpoint behind every port. Without ports: one, 80, as a source has it that knows no numbers."""
    endpoints = () if empty else (Endpoint("10.0.0.1", 9000),)
    made = tuple(Port(port, number, protocol, endpoints) for port, number in ports or (("", 80),))
    return Service(ServiceName(namespace, name), made)


def known(*services: Service) -> Mapping[ServiceName, Service]:
    return MappingProxyType({found.name: found for found in services})
