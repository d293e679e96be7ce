"""The rate limit service by itself, with its files."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import structlog
from grpc import aio

import envoy_api
from ratelimit.host.service import PATH, REQUEST, RESPONSE
from swashplate.address import Address
from swashplate.rate_limit_server import RateLimitServer
from swashplate.settings import Settings
from tests.e2e.harness.wait import until
from xds.host.grpc_messages import message_class

DEADLINE_S = 20.0
SHOP = """\
domain: shop
descriptors:
  - key: client
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: user
    value: bob
    rate_limit: {unit: day, requests_per_unit: 100}
    descriptors:
      - key: path
        rate_limit: {unit: hour, requests_per_unit: 10}
"""
BROKEN = "domain: shop\ndescriptors:\n  - key: client\n    rate_limit: {unit: fortnight, requests_per_unit: 3}\n"

Entries = Mapping[str, str]


class Site:
    """`limits` is its directory."""

    def __init__(self, directory: Path) -> None:
        self.limits = directory / "limits"
        self.limits.mkdir()

    def write(self, text: str = SHOP, name: str = "shop.yaml") -> None:
        (self.limits / name).write_text(text)

    def settings(self, **given: Any) -> Settings:
        return Settings.model_validate(
            {
                "ratelimit_config": self.limits,
                "ratelimit_listen": "127.0.0.1:0",
                "ratelimit_http": "127.0.0.1:0",
                "ratelimit_drain": "0",
                **given,
            }
        )

    @contextlib.asynccontextmanager
    async def serving(self, log: Any = None, **given: Any) -> AsyncIterator["Running"]:
        settings = self.settings(**given)
        server = RateLimitServer(settings, log or structlog.get_logger())
        try:
            listen, http = await server.start(settings.ratelimit_http)
            yield Running(server, listen, http)
        finally:
            await server.stop()


class Running:
    def __init__(self, server: RateLimitServer, listen: str, http: str) -> None:
        self.server, self.listen, self.http = server, listen, http

    @property
    def http_address(self) -> Address:
        return Address.parse(self.http)

    async def ready(self) -> "Running":
        async def is_ready() -> bool:
            return not self.server.unready

        await until(is_ready, "limits in force", within=DEADLINE_S)
        return self

    async def page(self, path: str, method: str = "GET", **more: Any) -> tuple[int, str]:
        """Status and body."""
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"http://{self.http}{path}", **more) as answer,
        ):
            return answer.status, await answer.text()

    async def ask(self, *descriptors: Entries, domain: str = "shop") -> Any:
        """The answer over gRPC."""
        return await ask(self.listen, *descriptors, domain=domain)

    async def health(self, service: str) -> str:
        return await health(self.listen, service)


def request(*descriptors: Entries, domain: str = "shop") -> bytes:
    said = [{"entries": [{"key": key, "value": value} for key, value in each.items()]} for each in descriptors]
    return envoy_api.encode(envoy_api.message(REQUEST, domain=domain, descriptors=said))


async def ask(listen: str, *descriptors: Entries, domain: str = "shop") -> Any:
    async with aio.insecure_channel(listen) as channel:
        answer = await channel.unary_unary(PATH)(request(*descriptors, domain=domain), timeout=DEADLINE_S)
    return envoy_api.message_class(RESPONSE).FromString(answer)


async def health(listen: str, service: str) -> str:
    asked = message_class("grpc.health.v1.HealthCheckRequest")(service=service).SerializeToString()
    async with aio.insecure_channel(listen) as channel:
        answer = await channel.unary_unary("/grpc.health.v1.Health/Check")(asked, timeout=DEADLINE_S)
    response = message_class("grpc.health.v1.HealthCheckResponse")
    said: str = response.ServingStatus.Name(response.FromString(answer).status)
    return said
