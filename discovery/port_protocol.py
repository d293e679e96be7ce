"""What a port speaks, told by its name where nothing says so: the convention of Kubernetes meshes."""

from mesh.service import Protocol

_BY_NAME = {
    "http": Protocol.HTTP1,
    "http1": Protocol.HTTP1,
    "http2": Protocol.HTTP2,
    "h2c": Protocol.HTTP2,
    "grpc": Protocol.GRPC,
    "tcp": Protocol.TCP,
    "tls": Protocol.TLS,
    "https": Protocol.TLS,
    "udp": Protocol.UDP,
}


def protocol_of_port_name(name: str) -> Protocol:
    """By the part before the first `-` (`grpc-web`, `tcp-metrics`); any other name means http1."""
    return _BY_NAME.get(name.lower().partition("-")[0], Protocol.HTTP1)
