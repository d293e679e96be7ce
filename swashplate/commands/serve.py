"""`swashplate serve`: the server itself."""

import asyncio

import click
import structlog
import uvloop

from operator_files.store import StoreError
from swashplate import VERSION, garbage, logs
from swashplate.address import Address
from swashplate.admin import AdminServer
from swashplate.contradictions import refuse_contradictions
from swashplate.control_plane import ControlPlane
from swashplate.metrics import Metrics
from swashplate.options import with_settings
from swashplate.output import UnusableError
from swashplate.ratelimit_settings import OF_HOST
from swashplate.settings import Settings, flag, has_source
from swashplate.signals import signals_set


@click.command(name="serve", short_help="Run the server.")
@with_settings(*(name for name in Settings.model_fields if name not in OF_HOST))
def command(settings: Settings) -> None:
    """Run the server: follow files and registries, and keep every Envoy that connects up to date.

    \b
    swashplate serve --services services.yaml --routes routes
    swashplate serve --kubernetes --routes routes
    swashplate serve --consul http://127.0.0.1:8500
    """
    refuse_contradictions(settings)
    if not has_source(settings):
        raise click.UsageError(
            "there is nothing to serve: give --services, --kubernetes, --consul, --routes or --resources"
        )
    _refuse_shared_addresses(settings)
    logs.configure(settings.log_level, settings.log_format)
    garbage.collect_less()
    try:
        uvloop.run(serve(settings))
    except (OSError, StoreError) as failure:
        raise UnusableError(str(failure)) from failure


def _refuse_shared_addresses(settings: Settings) -> None:
    """Two servers cannot listen at one address; port 0 is a different one for each."""
    used: dict[Address, str] = {}
    for name in ("listen", "admin", "rest"):
        address: Address | None = getattr(settings, name)
        if address is not None and address.port and (other := used.setdefault(address, name)) != name:
            raise click.UsageError(f"{flag(other)} and {flag(name)} are both {address}; they must differ")


async def serve(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT; a second one ends the process at once.

    Raises StoreError, CannotListenError, OSError where it cannot begin.
    """
    log = structlog.get_logger()
    stop = asyncio.Event()
    metrics = Metrics()
    plane = ControlPlane(settings, metrics, log)
    admin = AdminServer(plane, metrics, plane.limits)
    try:
        with signals_set(stop, log):
            admin_address = await admin.start(settings.admin)
            listen = await plane.start()
            log.info("serving", version=VERSION, listen=str(listen), admin=str(admin_address))
            await stop.wait()
        log.info("shutting down")
    finally:
        await plane.stop()
        await admin.stop()
