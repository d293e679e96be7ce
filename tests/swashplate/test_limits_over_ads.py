"""Limits of limit files and of routes, as an envoyproxy/ratelimit takes them from this server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

import envoy_api
from mesh.rate_limit import DOMAIN
from swashplate.address import Address
from tests.swashplate.site import DEADLINE_S, ROUTES, Running, Site, until

CONFIG = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
REQUEST = "envoy.service.discovery.v3.DiscoveryRequest"
RESPONSE = "envoy.service.discovery.v3.DiscoveryResponse"

SHOP = """\
domain: shop
descriptors:
- {key: generic_key, value: api, rate_limit: {unit: minute, requests_per_unit: 5}}
"""
LIMITED = f"{ROUTES}  rate_limits: [{{name: total, allow: 100/minute}}]\n"


class GoClient:
    """Behaves as envoyproxy/ratelimit does: no names, the state of the world, everything or nothing is taken."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._last: Any = None
        self.limits: dict[str, dict[str, Any]] = {}

    async def ask(self, error: str = "") -> None:
        request: dict[str, Any] = {"type_url": CONFIG, "node": {"id": "ratelimit-1"}}
        if self._last is not None:
            request |= {"response_nonce": self._last.nonce, "version_info": self._last.version_info}
        if error:
            request["error_detail"] = {"code": 2, "message": error}
        await self._call.write(envoy_api.message(REQUEST, **request))

    async def answer(self) -> dict[str, dict[str, Any]]:
        """The next answer, not yet acknowledged."""
        async with asyncio.timeout(DEADLINE_S):
            self._last = await self._call.read()
        unpacked = [envoy_api.to_dict(envoy_api.unpack(packed)) for packed in self._last.resources]
        return {config["name"]: config for config in unpacked}

    async def take(self) -> None:
        self.limits = await self.answer()
        await self.ask()


@contextlib.asynccontextmanager
async def go_client(here: Running) -> AsyncIterator[GoClient]:
    async with grpc.aio.insecure_channel(str(here.listen)) as channel:
        call = channel.stream_stream(
            METHOD,
            request_serializer=envoy_api.encode,
            response_deserializer=envoy_api.message_class(RESPONSE).FromString,
        )()
        client = GoClient(call)
        await client.ask()
        yield client
        call.cancel()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write_all()
    (tmp_path / "limits").mkdir()
    site.write("limits/shop.yaml", SHOP)
    site.write("routes/checkout.yaml", LIMITED)
    site.settings["ratelimit_config"] = tmp_path / "limits"
    return site


def total(limits: dict[str, dict[str, Any]]) -> int:
    (descriptor,) = limits[DOMAIN]["descriptors"]
    assert (descriptor["key"], descriptor["value"]) == ("limit", "default/checkout/total")
    requests: int = descriptor["rate_limit"]["requests_per_unit"]
    return requests


def state(here: Running) -> Any:
    (proxy,) = here.plane.status().proxies
    (kind,) = proxy.types
    assert kind.type == "RateLimitConfig"
    return kind


async def test_each_answer_has_the_limits_of_all_domains(site: Site) -> None:
    async with site.running() as here, go_client(here) as client:
        await client.take()
        assert client.limits.keys() == {"shop", DOMAIN}
        assert total(client.limits) == 100
        site.write("routes/checkout.yaml", LIMITED.replace("100/minute", "200/minute"))
        await client.take()
        assert client.limits.keys() == {"shop", DOMAIN}
        assert total(client.limits) == 200
        await until(lambda: state(here).state == "synced")


async def test_a_refused_domain_is_told_and_holds_up_no_other(site: Site) -> None:
    async with site.running() as here, go_client(here) as client:
        await client.take()
        site.write("limits/shop.yaml", SHOP.replace("5}", "6}"))
        await client.answer()
        await client.ask("shop: duplicate descriptor composite key")
        refused = await until(lambda: state(here).nack)
        assert refused.resources == ("shop",)
        site.write("routes/checkout.yaml", LIMITED.replace("100/minute", "200/minute"))
        await client.take()
        assert total(client.limits) == 200
        assert client.limits["shop"]["descriptors"][0]["rate_limit"]["requests_per_unit"] == 5


async def test_a_broken_file_changes_nothing_and_a_removed_one_is_gone(site: Site) -> None:
    async with site.running() as here, go_client(here) as client:
        await client.take()
        site.write("limits/shop.yaml", SHOP.replace("minute", "minuet"))
        await until(lambda: here.plane.status().problems)
        site.write("routes/checkout.yaml", LIMITED.replace("100/minute", "200/minute"))
        await client.take()
        assert client.limits.keys() == {"shop", DOMAIN}
        site.write("limits/other.yaml", SHOP.replace("domain: shop", "domain: other"))
        await client.take()
        (site.root / "limits/shop.yaml").unlink()
        await client.take()
        assert client.limits.keys() == {"other", DOMAIN}
        site.write("routes/checkout.yaml", ROUTES)
        await client.take()
        assert client.limits.keys() == {"other"}


async def test_limits_of_routes_are_served_where_envoys_ask_another_service(site: Site) -> None:
    site.settings |= {"ratelimit_config": None, "ratelimit_service": Address("ratelimit.internal", 8081)}
    async with site.running() as here, go_client(here) as client:
        await client.take()
        assert total(client.limits) == 100


async def test_limits_are_there_after_a_restart_before_any_file_is_read(site: Site, tmp_path: Path) -> None:
    site.settings["state"] = tmp_path / "state"
    async with site.running() as here, go_client(here) as client:
        await client.take()
        before = client.limits
    (site.root / "limits").rename(site.root / "limits-away")
    (site.root / "routes").rename(site.root / "routes-away")
    async with site.running() as here, go_client(here) as client:
        await client.take()
        assert client.limits == before


async def test_nobody_is_served_until_the_limit_files_have_been_read(site: Site) -> None:
    (site.root / "limits").rename(site.root / "limits-later")
    async with site.running(ready=False) as here:
        await until(lambda: here.plane.unready()[0].startswith("limit-files: ") and len(here.plane.unready()) == 1)
        (site.root / "limits-later").rename(site.root / "limits")
        await until(lambda: not here.plane.unready())


async def test_what_cannot_be_said_is_a_warning_once_somebody_takes_limits(site: Site) -> None:
    site.write("limits/shop.yaml", SHOP.replace("5}", "5, algorithm: token_bucket}"))
    async with site.running() as here:
        assert here.plane.status().warnings == ()
        async with go_client(here) as client:
            await client.take()
            (warning,) = here.plane.status().warnings
    assert (warning.service, warning.code) == ("shop", "rate-limit-config")
    assert "sent as a fixed window" in warning.reason


async def test_envoys_are_shown_no_limits(site: Site) -> None:
    async with site.running() as here:
        assert "RateLimitConfig" not in str(here.config(version="1.40.0"))
