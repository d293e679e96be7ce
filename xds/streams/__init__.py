"""The xDS transport protocol as an engine without I/O: bytes in, frames out."""
