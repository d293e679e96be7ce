"""Short ways to write a mesh in a test."""

from typing import Any

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


def mesh(*parts: Service | ServiceRoutes | BrokenRoutes) -> Mesh:
    services = {part.name: part for part in parts if isinstance(part, Service)}
    files = {part.service: part for part in parts if not isinstance(part, Service)}
    return Mesh().with_changes(services, files)


def composed(whole: Mesh, settings: TranslationSettings | None = None) -> Composer:
    composer = Composer(settings)
    composer.update(whole)
    return composer


def seen(whole: Mesh, settings: TranslationSettings | None = None, **node: Any) -> Snapshot:
    """What one node sees of a mesh: an Envoy of the newest version, unless it says otherwise."""
    return composed(whole, settings).view(Node("test", **{"version": NEWEST, **node}))
