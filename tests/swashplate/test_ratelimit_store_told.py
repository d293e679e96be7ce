"""Where limits are counted is told at the start, and that variables of envoyproxy/ratelimit do not say it."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from swashplate.counter_stores import counted_in
from swashplate.settings import Settings
from tests.swashplate.ratelimit_site import Site
from tests.swashplate.test_ratelimit_process import serving


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write()
    return site


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "memory of this process"),
        ({"redis": "rediss://bob:secret@shop.example:6380/2"}, "shop.example:6380/2"),
        (
            {"redis": "unix:///run/redis.sock", "redis_per_second": "redis+cluster://:secret@a:1,b:2"},
            "unix:/run/redis.sock; limits per second: a:1,b:2",
        ),
    ],
)
def test_the_store_is_told_without_secrets(given: dict[str, str], told: str) -> None:
    assert counted_in(Settings.model_validate(given)) == told


async def test_limits_in_force_are_told_with_their_store(site: Site) -> None:
    with capture_logs() as logs:
        async with site.serving() as here:
            await here.ready()
    assert [line["store"] for line in logs if line["event"] == "limits in force"] == ["memory of this process"]


async def test_variables_that_would_have_named_a_redis_are_told_to_be_unread(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis.example:6379")
    monkeypatch.setenv("RUNTIME_ROOT", "/data")
    async with serving(site) as server:
        told = await server.line("variables of envoyproxy/ratelimit are not read here")
    assert told["level"] == "warning"
    assert told["variables"] == "REDIS_URL, RUNTIME_ROOT"
    assert "--redis redis://HOST:PORT" in told["fix"]
    assert "--config DIRECTORY" in told["fix"]


async def test_they_are_not_spoken_of_where_a_redis_is_given(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis.example:6379")
    async with serving(site, "--host", "grpcio", "--redis", "redis://127.0.0.1:1") as server:
        server.process.terminate()
        await server.line("shutting down")
    assert not [line for line in server.lines if "variables" in line]
