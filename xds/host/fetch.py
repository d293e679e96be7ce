"""The unary Fetch methods of the discovery services."""

from typing import Final

import grpc

from xds.host.polls import Polled, Polls
from xds.host.rpc import Call, Ending, Rpc, Served, Unary, served
from xds.resources import types
from xds.streams import wire

_SERVICES: Final = {
    types.CLUSTER: ("envoy.service.cluster.v3.ClusterDiscoveryService", "FetchClusters"),
    types.ENDPOINT: ("envoy.service.endpoint.v3.EndpointDiscoveryService", "FetchEndpoints"),
    types.LISTENER: ("envoy.service.listener.v3.ListenerDiscoveryService", "FetchListeners"),
    types.ROUTE: ("envoy.service.route.v3.RouteDiscoveryService", "FetchRoutes"),
    types.SCOPED_ROUTE: ("envoy.service.route.v3.ScopedRoutesDiscoveryService", "FetchScopedRoutes"),
    types.SECRET: ("envoy.service.secret.v3.SecretDiscoveryService", "FetchSecrets"),
    types.RUNTIME: ("envoy.service.runtime.v3.RuntimeDiscoveryService", "FetchRuntime"),
    types.EXTENSION_CONFIG: ("envoy.service.extension.v3.ExtensionConfigDiscoveryService", "FetchExtensionConfigs"),
}


class Fetch:
    """Answers with the whole content, also where the client has it already: gRPC has no word for "unchanged"."""

    def __init__(self, polls: Polls, ending: Ending) -> None:
        self._polls, self._ending = polls, ending
        self._control_plane = wire.control_plane(polls.identifier)

    def methods(self) -> tuple[Served, ...]:
        request, response = (f"envoy.service.discovery.v3.Discovery{kind}" for kind in ("Request", "Response"))
        return tuple(
            served(Rpc(service, name, request, response), self._serving(type_url))
            for type_url, (service, name) in _SERVICES.items()
        )

    def _serving(self, type_url: str) -> Unary:
        async def serve(data: bytes, call: Call) -> bytes:
            if (reason := self._ending.reason or self._polls.why_not_ready()) is not None:
                await call.abort(grpc.StatusCode.UNAVAILABLE, reason)
            try:
                return self._answer(type_url, wire.sotw_request(data))
            except ValueError as error:
                await call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
                raise

        return serve

    def _answer(self, type_url: str, request: wire.Request) -> bytes:
        """Raises ValueError for a request that can't be answered."""
        if request.type_url not in ("", type_url):
            raise ValueError(f"this method serves {type_url}, and was asked for {request.type_url}")
        if request.node is None or not request.node.id:
            raise ValueError("the request must carry node.id")
        content = self._polls.content(request.node, type_url, request.names)
        self._polls.on_poll(Polled(request.node, type_url, content.version, unchanged=False))
        return wire.sotw_body(type_url, content.version, content.resources, self._control_plane)
