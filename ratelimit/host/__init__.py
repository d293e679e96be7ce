"""Hosts: they take calls of the RateLimitService from the network and hand them to the core a turn at a time.

Two with the same behaviour: `grpcio_host` on the server library that the discovery services are on, and `native_host`
on grpchost, the Rust extension, which is many times faster. Neither knows of limits or counters.
"""
