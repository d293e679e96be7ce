"""One service as translation sees it: what was discovered, what operators want, and who else refers to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from mesh.mesh import Routes
from mesh.policy import ClusterPolicy
from mesh.rule import BrokenRoutes, Forward, Patch, Rule, ServiceRoutes
from mesh.service import Labels, Service, ServiceName
from mesh.split import Destination, ServiceRef, Split, SubsetRef
from xds.translate.naming import subset_name
from xds.translate.ports import CalledPort, PortKey, PortTable

ServiceClusters = Callable[[ServiceRef], str]
"""The cluster that a reference to a service means, whether that service exists or not."""

DEFAULT_RULE = "default"
"""The name of the only rule of a service that has none."""


@dataclass(frozen=True, slots=True)
class Subject:
    """`base` is the name of the main port's cluster, `wanted` the ports that services' routes send to."""

    name: ServiceName
    base: str
    ports: PortTable
    service: Service | None
    routes: Routes | None
    wanted: frozenset[PortKey]
    clusters: ServiceClusters

    @property
    def file(self) -> ServiceRoutes | None:
        """The route file, if it ever had a good version."""
        return self.routes if isinstance(self.routes, ServiceRoutes) else None

    @property
    def broken(self) -> BrokenRoutes | None:
        return self.routes if isinstance(self.routes, BrokenRoutes) else None

    @property
    def policy(self) -> ClusterPolicy:
        return self.file.policy if self.file else ClusterPolicy()

    def patches(self, target: str) -> tuple[Patch, ...]:
        return tuple(patch for patch in self.file.patches if patch.target == target) if self.file else ()

    def rules(self, port: CalledPort) -> tuple[Rule, ...]:
        """The file's rules for the port it is for; everything to all endpoints for any other, or without rules."""
        if port.routed and self.file is not None and self.file.rules:
            return self.file.rules
        return (Rule(DEFAULT_RULE, Forward(Split.all_to(ServiceRef(self.name, port.number or None)))),)

    def cluster_of(self, port: CalledPort, to: Destination) -> str:
        """The cluster that a destination of the port's rules means."""
        return subset_name(port.cluster, to.subset) if isinstance(to, SubsetRef) else self.clusters(to)

    def forwards(self) -> Iterator[Forward]:
        """What the file's rules send on."""
        for rule in self.file.rules if self.file else ():
            if isinstance(rule.action, Forward):
                yield rule.action

    def subsets(self) -> dict[str, Labels | None]:
        """The file's subsets, and the ones that its rules name and it lacks: None, which selects nothing."""
        found: dict[str, Labels | None] = {}
        for forward in self.forwards():
            destinations = [*(share.to for share in forward.split.shares), *(mirror.to for mirror in forward.mirrors)]
            found.update((to.subset, None) for to in destinations if isinstance(to, SubsetRef))
        found.update((subset.name, subset.labels) for subset in (self.file.subsets if self.file else ()))
        return found

    @property
    def retry_budget(self) -> Fraction | None:
        """The largest budget of the file's rules: Envoy counts by cluster, not by rule."""
        retries = (forward.retry for forward in self.forwards())
        return max((retry.budget for retry in retries if retry and retry.budget is not None), default=None)
