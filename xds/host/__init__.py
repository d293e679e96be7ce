"""Carries the stream engine over grpcio."""
