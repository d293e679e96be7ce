"""Names on the wire: clusters, virtual hosts, and the domains that select one."""

from collections.abc import Iterator

from mesh.service import ServiceName

EGRESS = "egress"
"""The egress listener and its route table."""

SERVER_LISTENER = "grpc/server?xds.resource.listening_address="
"""What the name of a gRPC server's listener begins with; the address that it listens at follows (gRFC A36)."""

_RESERVED = frozenset(":/")


def base_name(service: ServiceName, default_namespace: str) -> str:
    """`checkout` in the default namespace, `checkout.shop` elsewhere."""
    return service.name if service.namespace == default_namespace else str(service)


def port_name(base: str, port: str | int) -> str:
    """The cluster of a further port: `checkout:9090`."""
    return f"{base}:{port}"


def subset_name(cluster: str, subset: str) -> str:
    """The cluster of a subset: `checkout/canary`, `checkout:9090/canary`."""
    return f"{cluster}/{subset}"


def virtual_host_name(cluster: str) -> str:
    """VHDS wants a virtual host's own name to be the resource's, which begins with its table's."""
    return f"{EGRESS}/{cluster}"


def refused_name(service: ServiceName) -> str:
    """The cluster of a service that may not have its own name, for those who refer to it: nobody else's."""
    return f"{service.namespace}//{service.name}"


def is_sayable(service: ServiceName) -> bool:
    """Whether no part of the name could be taken for a port or a subset, and whether there is a name at all."""
    return bool(service.name and service.namespace) and _RESERVED.isdisjoint(service.name + service.namespace)


def stat_name(name: str) -> str:
    """What the statistics of a cluster or listener are called.

    Envoy takes the name out of a statistic's up to the first dot, so a dot would split `checkout.shop` into a cluster
    `checkout` and a statistic that begins with `shop`.
    """
    return name.replace(".", "_")


def service_domains(service: ServiceName, cluster_domain: str) -> tuple[str, ...]:
    """Every form of a service's name but the short one, lower-case, without ports (Envoy compares without case)."""
    full = f"{service}.svc".lower()
    return (str(service).lower(), full, f"{full}.{cluster_domain.lower()}")


def with_ports(domain: str, *, bare: bool, port: int) -> Iterator[str]:
    """The domain bare and with the port, as a Host header has it; a port of 0 is none.

    `shop.*` already matches every port, and a pattern that ends in a port would be no pattern to Envoy.
    """
    if bare:
        yield domain
    if port and domain != "*" and not domain.endswith(".*"):
        yield f"{domain}:{port}"


def host_domains(host: str, port: int) -> tuple[str, ...]:
    """The domains of an extra host of a route file: as written when it has a port, else bare and with `port`."""
    host = host.lower()
    name, colon, tail = host.rpartition(":")
    if colon and tail.isdecimal() and (":" not in name or name.endswith("]")):
        return (host,)
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return tuple(with_ports(host, bare=True, port=port))
