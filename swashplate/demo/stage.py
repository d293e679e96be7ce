"""Start everything in order, say what there is to try, and end everything whatever happens."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import aiohttp
import click

from swashplate.address import Address
from swashplate.bootstrap import Client, envoy_bootstrap
from swashplate.demo import DemoError
from swashplate.demo.child import Child
from swashplate.demo.example import Example
from swashplate.demo.upstream import Upstream

_START_S = 30.0
_PROBE_S = 0.05
_NODE = ("example-1", "example")
_PREFIX = "swashplate-demo-"


class Places(NamedTuple):
    """Where the demo's servers listen."""

    xds: Address
    admin: Address
    egress: Address
    envoy_admin: Address


async def perform(example: Example, places: Places, envoy: Path, redis: str = "") -> None:
    """Runs until SIGINT, SIGTERM or SIGHUP, and then ends everything it started. Raises DemoError.

    `redis` is the URL of the store that counts for rate limits; without it the control plane counts in memory.
    """
    performance = asyncio.create_task(_perform(example, places, envoy, redis))
    loop = asyncio.get_running_loop()
    # Under nohup, SIGHUP is ignored, and stays so.
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    for number in (signal.SIGINT, signal.SIGTERM, *hangup):
        # Once: a second Ctrl-C must not interrupt the ending, which is short anyway.
        loop.add_signal_handler(number, lambda: performance.cancelling() or performance.cancel())
    try:
        await performance
    except asyncio.CancelledError:
        click.echo("All stopped.")
    except ExceptionGroup as group:
        expected, rest = group.split(DemoError)
        if rest is not None or expected is None:
            raise
        raise DemoError("\n".join(map(str, expected.exceptions))) from None


async def _perform(example: Example, places: Places, envoy: Path, redis: str) -> None:
    async with asyncio.TaskGroup() as watching, contextlib.AsyncExitStack() as started:
        _sweep(Path(tempfile.gettempdir()))
        directory = Path(started.enter_context(tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")))
        for identity in example.upstreams:
            await started.enter_async_context(Upstream(identity))

        control = await started.enter_async_context(Child("The control plane", _serve(example, places, redis)))
        watching.create_task(control.watch())
        await _until(_answers(f"http://{places.admin}/readyz"), "The control plane did not become ready")

        proxy = Child("Envoy", _envoy(envoy, places, directory), log=directory / "envoy.log")
        await started.enter_async_context(proxy)
        watching.create_task(proxy.watch())
        try:
            await _until(_answers(f"http://{places.envoy_admin}/ready"), "Envoy did not become ready")
        except DemoError as error:
            raise DemoError(f"{error}.{proxy.last_lines()}") from None

        click.echo(_welcome(example, places, redis))
        await asyncio.Event().wait()


def _sweep(parent: Path) -> None:
    """Remove what runs that were killed have left."""
    for left in parent.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not _runs(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _serve(example: Example, places: Places, redis: str) -> list[str]:
    return [
        *(sys.executable, "-m", "swashplate", "serve"),
        *("--services", str(example.services), "--routes", str(example.routes)),
        *("--listen", str(places.xds), "--admin", str(places.admin), "--egress", str(places.egress)),
        # A machine that is busy with other things must not look as if there were no limits.
        *("--ratelimit-timeout", "500ms"),
        # The demo listens at loopback only, as counters demand.
        "--ratelimit-counters",
        *(("--redis", redis) if redis else ()),
    ]


def _envoy(binary: Path, places: Places, directory: Path) -> list[str]:
    node_id, cluster = _NODE
    bootstrap = envoy_bootstrap(Client(node_id, cluster, (places.xds,), admin=places.envoy_admin))
    config = directory / "bootstrap.json"
    config.write_text(json.dumps(bootstrap), encoding="utf-8")
    return [str(binary), "-c", str(config), "--disable-hot-restart", "--concurrency", "2", "-l", "warning"]


def _answers(url: str) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        timeout = aiohttp.ClientTimeout(total=2)
        async with aiohttp.ClientSession(timeout=timeout) as http, http.get(url) as response:
            return response.status == 200

    return probe


async def _until(probe: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    try:
        async with asyncio.timeout(_START_S):
            while True:
                if await _tried(probe):
                    return
                await asyncio.sleep(_PROBE_S)
    except TimeoutError:
        raise DemoError(f"{otherwise} within {_START_S:.0f} s") from None


async def _tried(probe: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await probe()
    except (aiohttp.ClientError, TimeoutError):
        return False


def _welcome(example: Example, places: Places, redis: str) -> str:
    services = " or ".join(sorted({upstream.service for upstream in example.upstreams}))
    command = Path(sys.executable).with_name("swashplate")
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    if shutil.which("swashplate") == str(command):
        shown = Path("swashplate")
    route = example.routes / "checkout.yaml"
    counted = "in the Redis" if redis else "in memory; --redis URL counts in a Redis"
    return f"""
The example is running:

  Traffic          http://{places.egress}   (the host header names the service: {services})
  Control plane    http://{places.admin}   (its xDS server: {places.xds})
  Envoy's admin    http://{places.envoy_admin}

Try, in another terminal:

  1. See the split of {route}:
       for i in $(seq 200); do curl -s -H 'host: checkout' {places.egress}; done | sort | uniq -c
  2. Change its weights, for example to `to: {{stable: 50%, canary: 50%}}`, save the file, and do 1. again.
  3. Go over its limit, five requests a minute for each key (counted {counted}):
       for i in $(seq 7); do
         curl -sI -H 'host: checkout' -H 'x-api-key: me' {places.egress} | grep -i -e http -e rate
       done
     Its counter, and how to begin anew (`reset --all` in the place of `list`):
       {shown} ratelimit counters list swashplate --server http://{places.admin}/ratelimit
  4. See what every proxy has, and whether it took it:
       {shown} status --server http://{places.admin}

Ctrl-C ends everything.
"""
