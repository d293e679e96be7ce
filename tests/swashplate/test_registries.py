"""Several sources at once: from what registries say to what proxies get, status, metrics, log, and over restarts."""

from io import StringIO
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from discovery.left_out import LeftOut, Reason
from discovery.registry import Evidence
from mesh.mesh import Routes
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from swashplate import status_text
from swashplate.source_report import at
from swashplate.status import SourceReport
from tests.swashplate.registries import Registries, a_service
from tests.swashplate.site import ROUTES, Running, Site, until
from tests.translate.meshes import routes, rule, to_service

CHECKOUT = ServiceName("default", "checkout")


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Registries:
    return Registries(monkeypatch)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Kubernetes and Consul, and route files."""
    site = Site(tmp_path, settings={"services": None, "kubernetes": True, "consul": "http://127.0.0.1:8500"})
    site.settings["state"] = tmp_path / "state"
    return site


def addresses(here: Running, cluster: str = "checkout") -> set[str]:
    """Of a cluster, with their weights where these differ from 1."""
    found = next((one for one in here.config()["endpoints"] if one["cluster_name"] == cluster), None)
    if found is None:
        return set()
    said = set()
    for locality in found.get("endpoints", ()):
        for one in locality["lb_endpoints"]:
            weight = one.get("load_balancing_weight", 1)
            address = one["endpoint"]["address"]["socket_address"]["address"]
            said.add(address if weight == 1 else f"{address}*{weight}")
    return said


def report_of(here: Running, name: str) -> SourceReport:
    return next(source for source in here.plane.status().sources if source.name == name)


async def test_it_is_ready_when_every_source_was_heard(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        registries.kubernetes.says(a_service("checkout", "10.0.0.1"))
        assert here.plane.unready() == ("consul: not read yet", "route-files: not read yet")
        registries.consul.failed("connection refused")
        await until(lambda: here.plane.unready() == ("consul: connection refused",))
        registries.consul.says()
        await until(lambda: not here.plane.unready())
        assert addresses(here) == {"10.0.0.1"}


async def test_services_alone_are_served(tmp_path: Path, registries: Registries) -> None:
    async with Site(tmp_path, settings={"services": None, "routes": None, "kubernetes": True}).running(
        ready=False
    ) as here:
        registries.kubernetes.says(a_service("checkout", "10.0.0.1"))
        await until(lambda: not here.plane.unready())
        assert "checkout" in here.clusters()


async def ready(site: Site, registries: Registries, here: Running) -> None:
    registries.kubernetes.says(a_service("checkout", "10.0.0.1"))
    registries.consul.says(a_service("checkout", "10.0.1.1"))
    await until(lambda: not here.plane.unready() and addresses(here))


async def test_two_sources_of_one_service_are_merged(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        assert addresses(here) == {"10.0.0.1", "10.0.1.1"}
        assert [(one.name, one.endpoints) for one in here.plane.status().sources if one.kind == "services"] == [
            ("kubernetes", 1),
            ("consul", 1),
        ]


async def test_a_route_file_shares_requests_among_sources(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        with capture_logs() as lines:
            site.write(
                "routes/checkout.yaml",
                "version: 1\nservice: checkout\nsources: {kubernetes: 90%, consul: 10%}\nrules: [{to: checkout}]\n",
            )
            await until(lambda: addresses(here) == {"10.0.0.1*9", "10.0.1.1"})
            site.write(
                "routes/checkout.yaml",
                "version: 1\nservice: checkout\nrules: [{to: checkout}]\n"
                "sources: {kubernetes: 90%, service-files: 10%}\n",
            )
            await until(lambda: here.plane.status().warnings)
        (warning,) = here.plane.status().warnings
        assert (warning.code, warning.service) == ("unknown-source", "checkout.default")
        assert warning.reason.endswith(
            "gives a share to service-files, which is no source here; there are: kubernetes, consul"
        )
        assert any(line["event"].startswith("endpoints changed: checkout: 1 altered") for line in lines)


async def test_settings_share_requests_among_sources(site: Site, registries: Registries) -> None:
    site.settings["source_weights"] = "kubernetes=3,consul=1"
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        assert addresses(here) == {"10.0.0.1*3", "10.0.1.1"}


async def test_route_files_go_before_derived_routes_and_it_is_told(site: Site, registries: Registries) -> None:
    def rules(here: Running) -> set[str]:
        tables = here.config()["routes"]
        hosts = (host for table in tables for host in table["virtual_hosts"] if "checkout" in host["domains"])
        return {route["name"] for host in hosts for route in host["routes"]}

    derived: dict[ServiceName, Routes | None] = {
        CHECKOUT: routes("checkout", rule(to_service("a"), called="derived"))
    }
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        registries.kubernetes.derives(derived)
        await until(lambda: rules(here) == {"derived"})
        assert here.plane.status().warnings == ()
        site.write("routes/checkout.yaml", ROUTES.replace("name: main", "name: written"))
        await until(lambda: rules(here) == {"written"})
        (warning,) = (one for one in here.plane.status().warnings if one.code == "routes-hidden")
        assert warning.reason == (
            f"two sources have routes for it: those of {site.root}/routes/checkout.yaml (route-files) are in force, "
            "not those of checkout.yaml (kubernetes)"
        )
        (site.root / "routes/checkout.yaml").unlink()
        await until(lambda: rules(here) == {"derived"})
        registries.kubernetes.derives({CHECKOUT: None})
        await until(lambda: rules(here) == {"default"})


async def test_what_routes_name_is_looked_for_in_all_sources(site: Site, registries: Registries) -> None:
    site.write("routes/checkout.yaml", ROUTES)
    async with site.running(ready=False) as here:
        registries.kubernetes.says(a_service("checkout", "10.0.0.1", version="v1"))
        assert here.plane.status().problems == ()
        registries.consul.says()
        await until(lambda: here.plane.status().problems)
        assert [(one.code, one.severity) for one in here.plane.status().problems] == [("R030", "warning")]
        registries.consul.says(a_service("checkout", "10.0.1.1", version="v2"))
        await until(lambda: not here.plane.status().problems)


async def test_a_source_that_errs_is_stale_and_takes_nothing_away(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        with capture_logs() as lines:
            registries.consul.failed("the agent does not answer")
        assert addresses(here) == {"10.0.0.1", "10.0.1.1"}
        report = report_of(here, "consul")
        assert (report.state, report.error) == ("stale", "the agent does not answer")
        assert here.metric('swashplate_source_stale{kind="services",source="consul"} 1.0')
        assert [line["event"] for line in lines] == [
            "no answer from a source: the agent does not answer; what was last good stays in force"
        ]
        assert not here.plane.unready()


async def test_a_source_that_answers_again_is_told_once(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        with capture_logs() as lines:
            registries.consul.failed("the agent does not answer")
            registries.consul.says(a_service("checkout", "10.0.1.1"))
            await until(lambda: len(lines) > 1)
        assert [line["event"].partition(",")[0] for line in lines][1:] == ["a source answers again"]
        assert lines[1]["source"] == "consul"


async def test_a_note_whose_numbers_grow_is_told_once(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        with capture_logs() as lines:
            for number in range(5):
                registries.consul.notices(f"the token may not read a, b, c and {number} more")
            registries.consul.notices()
            registries.consul.notices("the token may not read a, b, c and 2 more")
        assert len(lines) == 2


async def test_services_of_one_name_in_two_namespaces_are_told_where_shares_were_meant_to_move(
    tmp_path: Path, registries: Registries
) -> None:
    def told(here: Running) -> list[str]:
        return [one.reason for one in here.plane.status().warnings if one.code == "namesakes"]

    settings = {"services": None, "kubernetes": True, "consul": "http://127.0.0.1:8500"}
    for weights, there in (("consul=100,kubernetes=0", 1), (None, 0)):
        more = {} if weights is None else {"source_weights": weights}
        async with Site(tmp_path, {**settings, **more}).running(ready=False) as here:
            registries.consul.says(a_service("checkout", "10.0.1.1"), a_service("alone", "10.0.1.2"))
            registries.kubernetes.says(a_service("checkout", "10.0.0.1", namespace="shop"))
            await until(lambda here=here: not here.plane.unready())
            assert len(told(here)) == there
            if weights:
                assert (
                    "kubernetes has checkout.shop, consul has checkout.default: these are two services"
                    in told(here)[0]
                )
                registries.kubernetes.says(a_service("checkout", "10.0.0.1"))
                await until(lambda here=here: not told(here))


async def test_a_removal_that_nobody_saw_is_held_until_it_is_confirmed(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        registries.kubernetes.says(a_service("web", "10.0.2.1"))
        with capture_logs() as lines:
            registries.kubernetes.lost("checkout", Evidence.FIRST)
        assert addresses(here) == {"10.0.0.1", "10.0.1.1"}
        assert report_of(here, "kubernetes").held == ("checkout",)
        assert "checkout: a removal is held until it is confirmed" in lines[0]["event"]
        out = StringIO()
        status_text.show(here.plane.status(), at(0), out)
        assert "removal held until confirmed (`swashplate confirm kubernetes`): checkout" in out.getvalue()
        with pytest.raises(LookupError, match="holds no removal of web"):
            await here.plane.confirm("kubernetes", "web")
        assert await here.plane.confirm("kubernetes", "checkout") == ("checkout",)
        await until(lambda: addresses(here) == {"10.0.1.1"})


async def test_instances_that_are_not_used_are_counted_by_reason(site: Site, registries: Registries) -> None:
    out = LeftOut("pod checkout-9", "10.0.0.9", 8080, Reason.NOT_READY, "its readiness probe fails")
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        with capture_logs() as lines:
            registries.kubernetes.says(a_service("checkout", "10.0.0.1"), checkout=out)
        assert report_of(here, "kubernetes").left_out == {"not-ready": 1}
        assert here.metric('swashplate_source_left_out{reason="not-ready",source="kubernetes"} 1.0')
        assert here.metric('swashplate_source_endpoints{source="kubernetes"} 1.0')
        (line,) = (line for line in lines if line["event"].startswith("endpoints changed"))
        assert line["event"] == "endpoints changed: checkout: 1 left out"
        assert (line["source"], line["left_out"]) == ("kubernetes", ["pod checkout-9: not-ready"])
        text = StringIO()
        status_text.show(here.plane.status(), at(0), text)
        assert "not used: 1 not-ready" in text.getvalue()


async def test_one_line_a_change_and_one_for_many(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        with capture_logs() as lines:
            registries.kubernetes.says(a_service("checkout", "10.0.0.2", "10.0.0.3"))
            registries.kubernetes.says(*(a_service(f"s{number}", "10.0.3.1") for number in range(100)))
        told = [line for line in lines if line["event"].startswith("endpoints changed")]
        assert [line["event"] for line in told] == [
            "endpoints changed: checkout: 2 in, 1 out",
            "endpoints changed in many services",
        ]
        assert told[0]["added"] == ["10.0.0.2:8080 (pod checkout-0)", "10.0.0.3:8080 (pod checkout-1)"]
        assert told[0]["removed"] == ["10.0.0.1:8080 (pod checkout-0)"]
        assert (told[1]["services"], told[1]["added"]) == (100, 100)


async def test_notes_are_in_status_and_once_in_the_log(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        with capture_logs() as lines:
            registries.consul.notices("no token is given, and ACLs are on")
            registries.consul.notices("no token is given, and ACLs are on")
        assert report_of(here, "consul").notes == ("no token is given, and ACLs are on",)
        assert [line["event"] for line in lines] == ["a source has a note: no token is given, and ACLs are on"]
        out = StringIO()
        status_text.show(here.plane.status(), at(0), out)
        assert "no token is given, and ACLs are on" in out.getvalue()


async def test_a_restart_serves_what_registries_said_though_they_are_down(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
    async with site.running() as here:
        assert addresses(here) == {"10.0.0.1", "10.0.1.1"}
        assert {one.state for one in here.plane.status().sources if one.kind == "services"} == {"stale"}
        registries.kubernetes.says(a_service("checkout", "10.0.0.7"), evidence=Evidence.FIRST)
        await until(lambda: addresses(here) == {"10.0.0.7", "10.0.1.1"})
        assert report_of(here, "kubernetes").state == "fresh"
        assert report_of(here, "consul").state == "stale"


async def test_contradictions_between_sources_are_warnings(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        registries.consul.says(a_service("checkout", "10.0.0.1", version="v9"))
        await until(lambda: any(one.code == "source-conflict" for one in here.plane.status().warnings))


async def test_ports_that_nobody_calls_through_sidecars_are_no_news(site: Site, registries: Registries) -> None:
    port = Port("sql", 5432, Protocol.TCP, (Endpoint("10.0.7.1", 5432),))
    async with site.running(ready=False) as here:
        await ready(site, registries, here)
        registries.kubernetes.says(Service(ServiceName("default", "db"), (port,)))
        await until(lambda: "db" in here.clusters())
        assert here.plane.status().warnings == ()
        site.write("routes/db.yaml", "version: 1\nservice: db\nrules: [{to: db}]\n")
        await until(lambda: [warning.code for warning in here.plane.status().warnings] == ["not-offered"])


async def test_no_source_of_that_name(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        with pytest.raises(LookupError, match="there are: kubernetes, consul, route-files"):
            await here.plane.confirm("zookeeper", None)
