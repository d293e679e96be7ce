"""Short ways to write a mesh in a test."""

from collections.abc import Iterable, Mapping
from typing import Any

from mesh.caller import Caller, CallerHost, Frontend
from mesh.match import Match
from mesh.mesh import Mesh
from mesh.rule import Action, BrokenRoutes, Forward, Rule, ServiceRoutes, Subset
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from mesh.split import Destination, ServiceRef, Share, Split, SubsetRef
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

NEWEST = (1, 40, 0)
OLDEST = (1, 36, 4)


def name(text: str) -> ServiceName:
    """`checkout` in the default namespace, `checkout.shop`."""
    short, _, namespace = text.partition(".")
    return ServiceName(namespace or "default", short)


def labels(**pairs: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairs.items())


def endpoint(address: str, port: int = 8080, **labelled: str) -> Endpoint:
    return Endpoint(address, port, labels=labels(**labelled))


def service(
    text: str, *endpoints: Endpoint, number: int = 80, port_name: str = "", protocol: Protocol = Protocol.HTTP1
) -> Service:
    """A service with one port."""
    return Service(name(text), (Port(port_name, number, protocol, tuple(endpoints)),))


def rule(action: Action, *matches: Match, called: str = "main") -> Rule:
    return Rule(called, action, matches)


def to(**shares: int) -> Forward:
    """A split over subsets, in hundredths of a percent."""
    return Forward(Split(tuple(Share(SubsetRef(subset), share) for subset, share in shares.items())))


def to_service(text: str, port: str | int | None = None) -> Forward:
    return Forward(all_to(ServiceRef(name(text), port)))


def all_to(destination: Destination) -> Split:
    return Split.all_to(destination)


def subsets(**versions: str) -> tuple[Subset, ...]:
    return tuple(Subset(subset, labels(version=version)) for subset, version in versions.items())


def routes(text: str, *rules: Rule, **more: Any) -> ServiceRoutes:
    return ServiceRoutes(name(text), rules=rules, source=f"{text}.yaml", **more)


def weighed(to: Mapping[str, int]) -> Split:
    """A split over services (`checkout`, `checkout:9090`) in proportion to weights."""
    named = [(text.partition(":"), weight) for text, weight in to.items()]
    return Split.of_weights(
        (ServiceRef(name(text), int(port) if port.isdecimal() else port or None), weight)
        for (text, _, port), weight in named
    )


def caller(
    cluster: str,
    namespace: str = "dev",
    domain: str = "",
    hosts: Iterable[Mapping[str, Any]] = (),
    frontends: Iterable[Mapping[str, Any]] = (),
    source: str = "",
) -> Caller:
    return Caller(
        cluster,
        namespace,
        domain,
        tuple(dependency(**each) for each in hosts),
        tuple(frontend(**each) for each in frontends),
        source,
    )


def dependency(
    service: str,
    to: Mapping[str, int],
    *,
    namespace: str = "dev",
    port: int = 80,
    port_name: str = "default",
    protocol: str = "http1",
) -> CallerHost:
    return CallerHost(service, namespace, port_name, port, Protocol(protocol), weighed(to))


def frontend(name: str, port: int, to: Mapping[str, int], *, protocol: str = "http1") -> Frontend:
    return Frontend(name, port, Protocol(protocol), weighed(to))


def mesh(*parts: Service | ServiceRoutes | BrokenRoutes | Caller) -> Mesh:
    services = {part.name: part for part in parts if isinstance(part, Service)}
    files = {part.service: part for part in parts if isinstance(part, ServiceRoutes | BrokenRoutes)}
    return Mesh().with_changes(services, files, {part.cluster: part for part in parts if isinstance(part, Caller)})


def composed(whole: Mesh, settings: TranslationSettings | None = None) -> Composer:
    composer = Composer(settings)
    composer.update(whole)
    return composer


def seen(whole: Mesh, settings: TranslationSettings | None = None, **node: Any) -> Snapshot:
    """What one node sees of a mesh: an Envoy of the newest version, unless it says otherwise."""
    return composed(whole, settings).view(Node("test", **{"version": NEWEST, **node}))
