"""The discovery services by their gRPC names: which method serves which type in which variant."""

from typing import Final, NamedTuple

from xds.host.rpc import Rpc
from xds.resources import types
from xds.streams.stream import DELTA, SOTW, Variant


class Method(NamedTuple):
    """`type_url` is None where the client says the type in each request."""

    service: str
    name: str
    variant: Variant
    type_url: str | None

    @property
    def rpc(self) -> Rpc:
        """The method as gRPC has it."""
        delta = "Delta" if self.variant is DELTA else ""
        request, response = (f"envoy.service.discovery.v3.{delta}Discovery{kind}" for kind in ("Request", "Response"))
        return Rpc(self.service, self.name, request, response, client_streams=True, server_streams=True)


def _pair(service: str, what: str, type_url: str | None, *, suffix: str = "") -> tuple[Method, Method]:
    return (
        Method(service, f"Stream{what}{suffix}", SOTW, type_url),
        Method(service, f"Delta{what}{suffix}", DELTA, type_url),
    )


METHODS: Final = (
    *_pair("envoy.service.discovery.v3.AggregatedDiscoveryService", "Aggregated", None, suffix="Resources"),
    *_pair("envoy.service.cluster.v3.ClusterDiscoveryService", "Clusters", types.CLUSTER),
    *_pair("envoy.service.endpoint.v3.EndpointDiscoveryService", "Endpoints", types.ENDPOINT),
    *_pair("envoy.service.listener.v3.ListenerDiscoveryService", "Listeners", types.LISTENER),
    *_pair("envoy.service.route.v3.RouteDiscoveryService", "Routes", types.ROUTE),
    *_pair("envoy.service.route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes", types.SCOPED_ROUTE),
    Method("envoy.service.route.v3.VirtualHostDiscoveryService", "DeltaVirtualHosts", DELTA, types.VIRTUAL_HOST),
    *_pair("envoy.service.secret.v3.SecretDiscoveryService", "Secrets", types.SECRET),
    *_pair("envoy.service.extension.v3.ExtensionConfigDiscoveryService", "ExtensionConfigs", types.EXTENSION_CONFIG),
    *_pair("envoy.service.runtime.v3.RuntimeDiscoveryService", "Runtime", types.RUNTIME),
)
