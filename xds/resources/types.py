"""The xDS resource types by their type URLs, in the order in which a first configuration is sent."""

from typing import Final

PREFIX: Final = "type.googleapis.com/"

CLUSTER: Final = PREFIX + "envoy.config.cluster.v3.Cluster"
ENDPOINT: Final = PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment"
LISTENER: Final = PREFIX + "envoy.config.listener.v3.Listener"
ROUTE: Final = PREFIX + "envoy.config.route.v3.RouteConfiguration"
VIRTUAL_HOST: Final = PREFIX + "envoy.config.route.v3.VirtualHost"
RUNTIME: Final = PREFIX + "envoy.service.runtime.v3.Runtime"

ORDER: Final = (CLUSTER, ENDPOINT, LISTENER, ROUTE, VIRTUAL_HOST, RUNTIME)
"""Make before break: what others refer to comes first (xds_protocol, "Eventual consistency considerations")."""

SHORT: Final = {
    CLUSTER: "CDS",
    ENDPOINT: "EDS",
    LISTENER: "LDS",
    ROUTE: "RDS",
    VIRTUAL_HOST: "VHDS",
    RUNTIME: "RTDS",
}
"""What people call the types, for logs, metrics and status."""
