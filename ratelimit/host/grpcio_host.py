"""A server of its own on grpcio."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

import grpc
from grpc import aio

from ratelimit.core.call import Turn
from ratelimit.host.counts import HostCounts
from ratelimit.host.gate import Gate
from ratelimit.host.grpcio_calls import GrpcioCalls
from ratelimit.host.limits import DEFAULT_LIMITS, HostLimits
from ratelimit.host.service import METHOD, SERVICE
from ratelimit.host.tls import TlsFiles, TlsMaterial
from ratelimit.host.tls_watch import TlsWatch

_FIXED: Final = (
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 0),
)


class GrpcioHost:
    """Serves from `start` to `stop`. `beside` are handlers of other services on the same port.

    `listen`: `HOST:PORT` (port 0: any that is free) or `unix:PATH`. `reuse_port`: others may listen there, too.
    """

    kind: Final = "grpcio"

    def __init__(
        self,
        decide: Callable[[Turn], None],
        gate: Gate,
        *,
        listen: str,
        limits: HostLimits = DEFAULT_LIMITS,
        tls: TlsFiles | None = None,
        on_tls: Callable[[str], None] = lambda _: None,
        reuse_port: bool = False,
        beside: Iterable[grpc.GenericRpcHandler] = (),
    ) -> None:
        """`on_tls` is told why the files of a running host cannot be used; empty once they can."""
        self._calls = GrpcioCalls(decide, gate, in_flight=limits.in_flight)
        self._listen = listen
        self._server = aio.server(options=_options(limits, reuse_port))
        own = {METHOD: self._calls.handler}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, own), *beside))
        self._tls = tls
        self._watch = TlsWatch(tls, self._reload, on_tls) if tls is not None else None
        self._started = False

    @property
    def counts(self) -> HostCounts:
        return self._calls.counts

    async def start(self) -> int:
        """The port it got, 0 for a unix socket. Raises OSError with the address in it, TlsError."""
        try:
            port = self._bind()
        except RuntimeError as error:
            raise OSError(f"cannot listen on {self._listen}: {error}") from error
        if port == 0:
            raise OSError(f"cannot listen on {self._listen}")
        await self._server.start()
        self._started = True
        if self._watch is not None:
            self._watch.start()
        return 0 if self._listen.startswith("unix:") else port

    async def stop(self, grace_s: float) -> None:
        """Takes no more calls, and ends when those under way are answered, or after `grace_s`."""
        if self._watch is not None:
            self._watch.stop()
        try:
            if self._started and grace_s > 0:
                await self._calls.let_in()
            stopping = asyncio.create_task(self._server.stop(grace_s))
            # It tells grpcio's core in its first step.
            await asyncio.sleep(0)
        finally:
            self._calls.release()
        await stopping

    def _bind(self) -> int:
        if self._tls is None or self._watch is None:
            return self._server.add_insecure_port(self._listen)
        self._reload(self._watch.first())
        credentials = grpc.dynamic_ssl_server_credentials(
            self._certificates, self._newest, require_client_authentication=self._tls.client_ca is not None
        )
        return self._server.add_secure_port(self._listen, credentials)

    def _newest(self) -> grpc.ServerCertificateConfiguration:
        """Asked by grpcio at each handshake, on a thread of its own."""
        return self._certificates

    def _reload(self, material: TlsMaterial) -> None:
        pairs = [(material.key, material.certificates)]
        self._certificates = grpc.ssl_server_certificate_configuration(pairs, material.client_ca)


def _options(limits: HostLimits, reuse_port: bool) -> tuple[tuple[str, Any], ...]:
    aging = (
        ()
        if limits.age_s is None
        else (
            ("grpc.max_connection_age_ms", round(limits.age_s * 1000)),
            ("grpc.max_connection_age_grace_ms", round(limits.age_grace_s * 1000)),
        )
    )
    return (
        *_FIXED,
        *aging,
        ("grpc.so_reuseport", int(reuse_port)),
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_concurrent_streams", limits.streams),
        # C-core ends calls with CANCELLED, and counts none, once so many wait for Python to look at them.
        ("grpc.server.max_pending_requests", max(limits.in_flight, 1_000)),
        ("grpc.server.max_pending_requests_hard_limit", max(2 * limits.in_flight, 3_000)),
        ("grpc.keepalive_time_ms", round(limits.keepalive_s * 1000)),
        ("grpc.keepalive_timeout_ms", round(limits.keepalive_timeout_s * 1000)),
        # Without it, C-core waits a minute for the answer, whatever keepalive_timeout says.
        ("grpc.http2.ping_timeout_ms", round(limits.keepalive_timeout_s * 1000)),
    )
