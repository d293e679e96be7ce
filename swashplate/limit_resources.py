"""The limit tree as resources, for instances of envoyproxy/ratelimit that take their limits from here."""

from envoy_api import encode
from ratelimit.limits.rate_limit_config import rate_limit_config
from ratelimit.limits.tree import DomainTree, LimitTree
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, ResourceSet


class LimitResources:
    """A RateLimitConfig for each domain, made again when the domain is another.

    `unsaid`: by domain, what a RateLimitConfig cannot say of its limits.
    """

    def __init__(self) -> None:
        self.resources: ResourceSet = EMPTY
        self.unsaid: dict[str, tuple[str, ...]] = {}
        self._domains: dict[str, DomainTree] = {}

    def update(self, tree: LimitTree) -> bool:
        """Whether the resources are others now. A domain without any descriptor is none."""
        domains = {name: domain for name, domain in tree.domains.items() if domain.descriptors}
        changes: dict[str, Resource | None] = dict.fromkeys(self._domains.keys() - domains.keys())
        for name, domain in domains.items():
            if self._domains.get(name) is not domain:
                rendered = rate_limit_config(name, domain.descriptors)
                changes[name] = Resource(types.RATE_LIMIT_CONFIG, name, encode(rendered.message))
                self.unsaid[name] = rendered.unsaid
        for name in self._domains.keys() - domains.keys():
            del self.unsaid[name]
        before, self._domains = self.resources, domains
        self.resources = before.with_changes(changes)
        return self.resources is not before


def takes_limits(node: Node) -> bool:
    """Whether the node may be an envoyproxy/ratelimit, which says of itself only what it is called: Envoys say their
    version, and are not shown limits, which are nothing to them."""
    return node.version is None and not node.is_grpc
