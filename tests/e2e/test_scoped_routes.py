"""Route tables by scope: a header of the request says which table a real Envoy looks into."""

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


def scope(name: str, table: str, key: str) -> dict[str, Any]:
    kind = f"{raw.TYPE}envoy.config.route.v3.ScopedRouteConfiguration"
    key_of = {"fragments": [{"string_key": key}]}
    return {"@type": kind, "name": name, "route_configuration_name": table, "key": key_of}


def by_header(name: str) -> dict[str, Any]:
    """A listener's routes: those of the scope whose key is in this header."""
    fragment = {"header_value_extractor": {"name": name, "index": 0}}
    scoped = {
        "name": "scopes",
        "scope_key_builder": {"fragments": [fragment]},
        "rds_config_source": raw.ADS,
        "scoped_rds": {"scoped_rds_config_source": raw.ADS},
    }
    return {"scoped_routes": scoped}


async def test_scopes_are_edited_live(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    site, port = Site(tmp_path, sources=("resources",)), free_port()
    tables = [raw.table(name, raw.answer(name)) for name in ("red", "blue")]
    site.raw("web", raw.listener("web", port, by_header("x-tenant")), *tables)
    site.raw("scopes", scope("a", "red", "ann"), scope("b", "blue", "bob"))

    async def answered(tenant: str, body: str) -> None:
        async def as_said() -> bool:
            found = await fetch(port, x_tenant=tenant)
            return found == (200, body) if body else found[0] == 404

        await until(as_said, f"{tenant} to be answered with {body or 404}")

    async with site.running(), site.envoy(envoy_binary, variant) as envoy:
        await envoy.live(within=10)
        await answered("ann", "red")
        await answered("bob", "blue")
        await answered("cem", "")

        site.raw("scopes", scope("a", "red", "ann"), scope("b", "red", "bob"), scope("c", "blue", "cem"))
        await answered("bob", "red")
        await answered("cem", "blue")

        site.raw("scopes", scope("b", "blue", "ann"), scope("c", "blue", "cem"))
        await answered("ann", "blue")
        await answered("bob", "")

        site.raw("web", raw.listener("web", port, by_header("x-tenant")), raw.table("blue", raw.answer("navy")))
        await answered("ann", "navy")
        await answered("cem", "navy")
        assert (await site.in_sync()).in_force


async def test_an_edit_of_one_scope_costs_the_others_no_request(
    tmp_path: Path, envoy_binary: Path, variant: str
) -> None:
    site, port = Site(tmp_path, sources=("resources",)), free_port()
    site.raw("web", raw.listener("web", port, by_header("host")), raw.table("stays", raw.answer("stays")))
    async with site.running(), site.envoy(envoy_binary, variant) as envoy:
        site.raw("scopes", scope("a", "stays", "stays"))
        await envoy.live(within=10)

        async def there() -> bool:
            return await fetch(port, "stays") == (200, "stays")

        await until(there, "the first scope")
        async with Load(("127.0.0.1", port), "stays", connections=2) as load:
            for edit in range(4):
                table = f"table-{edit}"
                site.raw("moves", scope("b", table, "moves"), raw.table(table, raw.answer(table)))

                async def moved(table: str = table) -> bool:
                    return await fetch(port, "moves") == (200, table)

                await until(moved, f"the scope to move to {table}")
        assert load.failures() == []
