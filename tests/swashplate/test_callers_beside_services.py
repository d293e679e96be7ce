"""Callers in one control plane with services that come and go, and over a restart; without a Consul."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swashplate.explain.request import Request
from tests.lighthouse.keys import NEW, OLD, discovery, route, target
from tests.lighthouse.shelf import Shelf
from tests.swashplate.registries import Registries, a_service
from tests.swashplate.site import Running, Site, until

CALLER = "my-stack--1-0-0--abc"
SPLIT = discovery(dev=[route(target(OLD, 84), target(NEW, 16))])


class Shelves:
    """Keys below each prefix, in the place of Consul's."""

    def __init__(self) -> None:
        self.by_prefix: dict[str, Shelf] = {}

    def at(self, prefix: str) -> Shelf:
        return self.by_prefix[prefix]

    def folder(self, _: Any, prefix: str, *, wanted: Callable[[str], bool] = bool) -> Shelf:
        """A later life follows what there is by then."""
        known = self.by_prefix.get(prefix)
        shelf = self.by_prefix[prefix] = Shelf(f"consul:{prefix}/")
        shelf.files = dict(known.files) if known is not None else {}
        return shelf


@pytest.fixture
def shelves(monkeypatch: pytest.MonkeyPatch) -> Shelves:
    shelves = Shelves()
    monkeypatch.setattr("discovery.consul.kv.KvFolder", shelves.folder)
    return shelves


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Registries:
    return Registries(monkeypatch)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        tmp_path,
        settings={
            "services": None,
            "consul": "http://127.0.0.1:8500",
            "consul_routes": "swashplate/routes",
            "lighthouse": True,
            "state": tmp_path / "state",
        },
    )


async def ready(registries: Registries, here: Running) -> None:
    registries.consul.says(
        a_service("checkout", "10.0.0.1", version="v1"), a_service(OLD, "10.0.1.1"), a_service(NEW, "10.0.1.2")
    )
    await until(lambda: not here.plane.unready())


async def shares(here: Running, cluster: str) -> list[tuple[str, float]]:
    report = await here.plane.explain_route(Request.parse("howdy-http"), None, cluster)
    return [(one.to, one.percent) for one in report.destinations]


async def test_a_caller_gets_its_weighted_targets_and_nothing_else(
    site: Site, registries: Registries, shelves: Shelves
) -> None:
    async with site.running(ready=False) as here:
        await ready(registries, here)
        shelves.at("lighthouse/discovery/v1").put(CALLER, SPLIT)
        await until(lambda: "howdy-http.dev" in str(here.config("n", CALLER)))
        assert await shares(here, CALLER) == [(OLD, 84.0), (NEW, 16.0)]
        assert "checkout" not in str(here.config("n", CALLER))
        assert "howdy-http.dev" not in str(here.config("n", "somebody"))
        (report,) = (one for one in here.plane.status().sources if one.name == "lighthouse")
        assert (report.kind, report.state, report.services) == ("callers", "fresh", 1)


async def test_services_that_come_and_go_do_not_disturb_callers(
    site: Site, registries: Registries, shelves: Shelves
) -> None:
    async with site.running(ready=False) as here:
        await ready(registries, here)
        shelves.at("lighthouse/discovery/v1").put(CALLER, SPLIT)
        await until(lambda: "howdy-http.dev" in str(here.config("n", CALLER)))
        for number in range(3):
            registries.consul.says(a_service("other", f"10.0.9.{number}"))
            registries.consul.lost("checkout")
            registries.consul.says(a_service("checkout", "10.0.0.1"))
        registries.consul.lost(NEW)
        await until(lambda: any(one.code for one in here.plane.status().warnings))
        assert here.plane.sick() == ()
        assert len(await shares(here, CALLER)) == 2


async def test_a_restart_has_callers_before_consul_is_heard(
    site: Site, registries: Registries, shelves: Shelves
) -> None:
    async with site.running(ready=False) as here:
        await ready(registries, here)
        shelves.at("lighthouse/discovery/v1").put(CALLER, SPLIT)
        await until(lambda: "howdy-http.dev" in str(here.config("n", CALLER)))
    async with site.running(ready=False) as here:
        assert "howdy-http.dev" in str(here.config("n", CALLER))
        assert len(await shares(here, CALLER)) == 2
