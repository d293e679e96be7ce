"""What an edit of one service among a thousand sends to a real Envoy, by its own count."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.e2e.harness.site import Site, bytes_received, service_file, write
from tests.e2e.harness.wait import until

SERVICES = 1000


async def test_one_edit_of_a_thousand_is_less_than_a_kilobyte(site: Site, newest_envoy: Path) -> None:
    """An incremental Envoy that takes virtual hosts one by one. Beside it, one that is sent the table."""
    services = [{"name": f"service-{n}", "endpoints": [f"10.0.{n // 250}.{n % 250}:80"]} for n in range(SERVICES)]
    write(site.services / "all.yaml", service_file(*services))
    received: dict[str, int] = {}
    async with AsyncExitStack() as running:
        await running.enter_async_context(site.running())
        for variant in ("delta", "sotw"):
            async with site.envoy(newest_envoy, variant, name=variant) as envoy:
                await envoy.live()
                await site.in_sync()
                before = await bytes_received(envoy)
                await edit(site, f"edit-{variant}")
                received[variant] = await bytes_received(envoy) - before
    assert received["delta"] < 1024
    assert received["sotw"] > 100 * received["delta"]


async def edit(site: Site, called: str) -> None:
    """Names a rule of one service, and waits until the Envoy has it."""
    before = versions(await site.in_sync())
    site.route("service-7", {"rules": [{"name": called, "to": "service-7"}]})

    async def has_it() -> bool:
        return versions(await site.in_sync()) != before

    await until(has_it, "the edit")


def versions(report: Any) -> list[str]:
    return [part.acked_version for proxy in report.proxies for part in proxy.types]
