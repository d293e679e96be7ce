"""`swashplate ratelimit serve`: the rate limit service by itself."""

import asyncio
import os
from typing import Final

import click
import structlog
import uvloop
from structlog.typing import FilteringBoundLogger

from operator_files.store import StoreError
from ratelimit.counters.redis.settings import SettingsError
from swashplate import VERSION, garbage, logs
from swashplate.counter_stores import counted_in
from swashplate.options import with_settings
from swashplate.output import UnusableError
from swashplate.rate_limit_server import RateLimitServer
from swashplate.rate_limit_workers import Workers
from swashplate.ratelimit_contradictions import limit_contradictions
from swashplate.ratelimit_settings import OF_HOST, OF_LIMITS, RATELIMIT_PREFIX
from swashplate.settings import Settings
from swashplate.signals import signals_set, unless

_MEANT: Final = {"REDIS_URL": "--redis redis://HOST:PORT", "RUNTIME_ROOT": "--config DIRECTORY"}
"""Variables of envoyproxy/ratelimit, and what is said instead."""


@click.command(name="serve", short_help="Run the rate limit service.")
@with_settings(
    *OF_LIMITS, *OF_HOST, "routes", "namespace", "state", "identifier", "log_level", "log_format",
    omitted=RATELIMIT_PREFIX, file_flag="--settings",
)  # fmt: skip
def command(settings: Settings) -> None:
    """Run Envoy's rate limit service: follow limit files, and the limits of route files, and answer.

    \b
    swashplate ratelimit serve --config limits
    swashplate ratelimit serve --routes routes
    swashplate ratelimit serve --config limits --redis redis://127.0.0.1:6379 --workers 2
    """
    if settings.ratelimit_config is None and settings.routes is None:
        raise click.UsageError("there are no limits to serve: give --config or --routes")
    if lines := list(limit_contradictions(settings, RATELIMIT_PREFIX)):
        raise click.UsageError("\n".join(lines))
    logs.configure(settings.log_level, settings.log_format)
    garbage.collect_less()
    try:
        uvloop.run(serve(settings))
    except (OSError, StoreError, SettingsError, LookupError) as failure:
        raise UnusableError(str(failure)) from failure


async def serve(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT; a second one ends the process at once."""
    log = structlog.get_logger()
    stop = asyncio.Event()
    several = settings.ratelimit_workers > 1
    server = Workers(settings, log) if several else RateLimitServer(settings, log)
    try:
        with signals_set(stop, log):
            started = await unless(stop, _started(server, settings))
            if started is None:
                return
            listen, http, host = started
            workers = {"workers": settings.ratelimit_workers} if several else {}
            log.info(
                "serving rate limits",
                version=VERSION,
                listen=listen,
                http=http,
                host=host,
                store=counted_in(settings),
                **workers,
            )
            _tell_unread(log, settings)
            if settings.ratelimit_host == "auto" and host == "grpcio":
                log.warning(
                    "grpchost is not built here",
                    lost="the grpcio host serves, at a fraction of its calls a second",
                    fix="install Rust's cargo and run `make install`; or say `--host grpcio`, which ends this line",
                )
            await stop.wait()
        log.info("shutting down")
    finally:
        await server.stop()


def _tell_unread(log: FilteringBoundLogger, settings: Settings) -> None:
    """Who moves from envoyproxy/ratelimit has its variables, and would not know that they do nothing."""
    if not settings.redis and (unread := {name: meant for name, meant in _MEANT.items() if name in os.environ}):
        log.warning(
            "variables of envoyproxy/ratelimit are not read here",
            variables=", ".join(unread),
            lost="calls are counted in memory of this process, and shared with no other",
            fix="; ".join(f"in the place of {name}, give {meant}" for name, meant in unread.items()),
        )


async def _started(server: RateLimitServer | Workers, settings: Settings) -> tuple[str, str, str]:
    """Where it takes calls and HTTP, and by which host."""
    if isinstance(server, Workers):
        return await server.start()
    listen, http = await server.start(settings.ratelimit_http)
    return listen, http, server.host_kind
