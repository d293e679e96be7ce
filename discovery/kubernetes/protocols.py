"""What a Service's port speaks: its appProtocol, else what its name begins with, else http1."""

from typing import Final

from discovery.port_protocol import protocol_of_port_name
from mesh.service import Protocol

TCP: Final = "TCP"
"""Kubernetes' default transport."""
UDP: Final = "UDP"

_BY_APP_PROTOCOL: Final = {
    # Kubernetes' own (KEP-3726).
    "kubernetes.io/h2c": Protocol.HTTP2,
    "kubernetes.io/ws": Protocol.HTTP1,
    "kubernetes.io/wss": Protocol.TLS,
    # IANA's service names, and the words that meshes agree on.
    "http": Protocol.HTTP1,
    "http1": Protocol.HTTP1,
    "ws": Protocol.HTTP1,
    "grpc-web": Protocol.HTTP1,
    "http2": Protocol.HTTP2,
    "h2c": Protocol.HTTP2,
    "grpc": Protocol.GRPC,
    "https": Protocol.TLS,
    "tls": Protocol.TLS,
    "wss": Protocol.TLS,
    "tcp": Protocol.TCP,
    "mongo": Protocol.TCP,
    "mysql": Protocol.TCP,
    "postgres": Protocol.TCP,
    "postgresql": Protocol.TCP,
    "redis": Protocol.TCP,
    "amqp": Protocol.TCP,
    "kafka": Protocol.TCP,
}


def protocol_of(transport: str, app_protocol: str | None, port_name: str) -> Protocol | None:
    """None for a transport that Envoy's proxies don't carry (SCTP). An unknown appProtocol says nothing."""
    if transport not in ("", TCP):
        return Protocol.UDP if transport == UDP else None
    return _BY_APP_PROTOCOL.get((app_protocol or "").lower()) or protocol_of_port_name(port_name)
