"""The xDS resource types by their type URLs, in the order in which a first configuration is sent."""

from typing import Final

PREFIX: Final = "type.googleapis.com/"

CLUSTER: Final = PREFIX + "envoy.config.cluster.v3.Cluster"
ENDPOINT: Final = PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment"
LISTENER: Final = PREFIX + "envoy.config.listener.v3.Listener"
ROUTE: Final = PREFIX + "envoy.config.route.v3.RouteConfiguration"
VIRTUAL_HOST: Final = PREFIX + "envoy.config.route.v3.VirtualHost"
SCOPED_ROUTE: Final = PREFIX + "envoy.config.route.v3.ScopedRouteConfiguration"
SECRET: Final = PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret"
EXTENSION_CONFIG: Final = PREFIX + "envoy.config.core.v3.TypedExtensionConfig"
RUNTIME: Final = PREFIX + "envoy.service.runtime.v3.Runtime"
RATE_LIMIT_CONFIG: Final = PREFIX + "ratelimit.config.ratelimit.v3.RateLimitConfig"

ORDER: Final = (
    SECRET,
    CLUSTER,
    ENDPOINT,
    EXTENSION_CONFIG,
    LISTENER,
    SCOPED_ROUTE,
    ROUTE,
    VIRTUAL_HOST,
    RUNTIME,
    RATE_LIMIT_CONFIG,
)
"""Make before break: what others refer to comes first (xds_protocol, "Eventual consistency considerations")."""

SHORT: Final = {
    CLUSTER: "CDS",
    ENDPOINT: "EDS",
    LISTENER: "LDS",
    ROUTE: "RDS",
    VIRTUAL_HOST: "VHDS",
    SCOPED_ROUTE: "SRDS",
    SECRET: "SDS",
    EXTENSION_CONFIG: "ECDS",
    RUNTIME: "RTDS",
    RATE_LIMIT_CONFIG: "RateLimitConfig",
}
"""What people call the types, for logs, metrics and status."""
