"""A gRPC server in Rust that hands Python whole batches of calls."""

from grpchost._grpchost import Host, Limits, OpenCall, Tls, Turn

__all__ = ["Host", "Limits", "OpenCall", "Tls", "Turn"]
