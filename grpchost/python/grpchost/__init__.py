"""A unary gRPC server in Rust that hands Python whole batches of calls."""

from grpchost._grpchost import Host, Limits, Tls, Turn

__all__ = ["Host", "Limits", "Tls", "Turn"]
