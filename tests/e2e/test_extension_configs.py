"""Configurations of HTTP filters that real Envoys fetch by name: changed, and never taken away under traffic."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import raw
from tests.e2e.harness.load import Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.raw import fetch
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

FAULT = f"{raw.TYPE}envoy.extensions.filters.http.fault.v3.HTTPFault"


@pytest.fixture
def alone(tmp_path: Path) -> Site:
    """A control plane that knows nothing but resource files."""
    return Site(tmp_path, sources=("resources",))


def aborting(name: str, status: int) -> dict[str, Any]:
    """A filter that answers every request to /fault with the status."""
    fault = {
        "@type": FAULT,
        "abort": {"http_status": status, "percentage": {"numerator": 100}},
        "headers": [{"name": ":path", "string_match": {"exact": "/fault"}}],
    }
    kind = f"{raw.TYPE}envoy.config.core.v3.TypedExtensionConfig"
    return {"@type": kind, "name": name, "typed_config": fault}


def discovered(name: str) -> dict[str, Any]:
    """The filter whose configuration is fetched."""
    return {"name": name, "config_discovery": {"config_source": raw.ADS, "type_urls": [FAULT]}}


async def answered(port: int, status: int) -> None:
    async def as_said() -> bool:
        return (await fetch(port, path="/fault"))[0] == status

    await until(as_said, f"/fault at {port} to be answered with {status}")


async def test_a_filters_configuration_changes_live(alone: Site, envoy_binary: Path, variant: str) -> None:
    """Once it is gone from the files, Envoys that use it keep it: without it they would answer with 500."""
    port = free_port()
    alone.raw("web", raw.listener("web", port, raw.inline(raw.answer("web")), filters=[discovered("fault")]))
    alone.raw("filters", aborting("fault", 418))
    async with alone.running(), alone.envoy(envoy_binary, variant) as envoy:
        await envoy.live(within=10)
        async with Load(("127.0.0.1", port), "web", connections=2) as load:
            await answered(port, 418)
            alone.raw("filters", aborting("fault", 451), aborting("unrelated", 400))
            await answered(port, 451)
            (alone.resources / "filters.yaml").unlink()
            alone.raw("more", raw.listener("more", other := free_port(), raw.inline(raw.answer("more"))))

            async def later_edit() -> bool:
                return await fetch(other) == (200, "more")

            await until(later_edit, "a later edit")
            await alone.in_sync()
            await load.more(10)
            await answered(port, 451)
            alone.raw("filters", aborting("fault", 409))
            await answered(port, 409)
        assert load.failures() == []
        assert load.reconnects == 0


async def test_a_configuration_that_comes_late_holds_only_its_listener(
    alone: Site, envoy_binary: Path, variant: str
) -> None:
    needy, plain = free_port(), free_port()
    alone.raw("plain", raw.listener("plain", plain, raw.inline(raw.answer("one"))))
    async with alone.running(), alone.envoy(envoy_binary, variant) as envoy:
        await envoy.live(within=10)
        filters = [discovered("late")]
        alone.raw("needy", raw.listener("needy", needy, raw.inline(raw.answer("needy")), filters=filters))
        alone.raw("plain", raw.listener("plain", plain, raw.inline(raw.answer("two"))))

        async def edited() -> bool:
            return await fetch(plain) == (200, "two")

        await until(edited, "the other listener", within=10)
        alone.raw("filters", aborting("late", 418))
        await answered(needy, 418)
        assert await fetch(needy) == (200, "needy")
