"""Asking the services beside discovery over gRPC."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from grpc import aio

import envoy_api
from tests.swashplate.site import DEADLINE_S, Running, Site

LOAD = "envoy.service.load_stats.v3"
LOGS = "envoy.service.accesslog.v3"


@contextlib.asynccontextmanager
async def channel(here: Running) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(str(here.listen)) as opened:
        yield opened


async def asked(here: Running, method: str, request: bytes) -> bytes:
    async with channel(here) as opened:
        answer: bytes = await opened.unary_unary(method)(request, timeout=DEADLINE_S)
        return answer


async def read(call: Any) -> Any:
    return await asyncio.wait_for(call.read(), DEADLINE_S)


async def everything(call: Any) -> None:
    while await read(call) is not aio.EOF:
        pass


def site_that_ranks_errors(directory: Path) -> Site:
    """A site whose server keeps the requests that fail most often."""
    site = Site(directory, settings={"top_errors": 5})
    site.write_all()
    return site


def load_request(cluster: str, **numbers: int) -> bytes:
    stats = [{"locality": {"region": "eu", "zone": "a"}, **numbers}]
    clusters = [{"cluster_name": cluster, "upstream_locality_stats": stats, "load_report_interval": {"seconds": 30}}]
    return envoy_api.encode(envoy_api.message(f"{LOAD}.LoadStatsRequest", cluster_stats=clusters))


def failed_requests(*codes: int) -> bytes:
    request = {"request_method": "GET", "scheme": "http", "authority": "checkout", "path": "/a?b"}
    entries = [{"request": request, "response": {"response_code": {"value": code}}} for code in codes]
    return envoy_api.encode(envoy_api.message(f"{LOGS}.StreamAccessLogsMessage", http_logs={"log_entry": entries}))
