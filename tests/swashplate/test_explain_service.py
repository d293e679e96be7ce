"""`explain service`, and what of it `explain route` and `explain endpoint` say: what is left out, and shares."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from discovery.left_out import LeftOut, Reason
from mesh.service import Health, Service, ServiceName
from swashplate.explain import text
from swashplate.explain.reports import EndpointReport, RouteReport, ServiceReport
from swashplate.explain.request import Request
from tests.swashplate.invoking import invoked
from tests.swashplate.registries import Registries, a_service
from tests.swashplate.site import Running, Site, until

ROUTES = """\
version: 1
service: checkout
subsets:
  stable: {version: v41}
  canary: {version: v42}
rules:
- name: main
  to: {stable: 75%, canary: 25%}
"""
BAD_PORT = LeftOut("pod shop/checkout-9", "10.0.0.9", 0, Reason.NO_PORT, "it has no port called http")


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Registries:
    return Registries(monkeypatch)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, settings={"services": None, "kubernetes": True, "consul": "http://127.0.0.1:8500"})


async def filled(site: Site, registries: Registries, here: Running) -> None:
    site.write("routes/checkout.yaml", ROUTES)
    registries.kubernetes.says(a_service("checkout", "10.0.0.1", version="v42"), checkout=BAD_PORT)
    registries.consul.says()
    await until(lambda: not here.plane.unready() and here.plane.status().problems)


def said(report: ServiceReport | RouteReport | EndpointReport) -> str:
    out = StringIO()
    match report:
        case ServiceReport():
            text.show(text.of_service(report), out)
        case RouteReport():
            text.show(text.of_route(report), out)
        case EndpointReport():
            text.show(text.of_endpoint(report), out)
    return out.getvalue()


async def test_a_share_without_endpoints_fails_and_names_what_is_left_out(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await filled(site, registries, here)
        report = await here.plane.explain_route(Request.parse("checkout"), None, None)
        assert report.failed
        assert "\n  left out: pod shop/checkout-9 (10.0.0.9): no-such-port: it has no port called http\n" in said(
            report
        )
        result = await invoked(here, "explain", "route", "checkout")
        assert result.exit_code == 1


async def test_a_subset_without_endpoints_is_told_with_what_is_left_out_and_never_with_anothers_value(
    site: Site, registries: Registries
) -> None:
    async with site.running(ready=False) as here:
        await filled(site, registries, here)
        (problem,) = here.plane.status().problems
        assert problem.code == "R030"
        assert "left out: pod shop/checkout-9 (no-such-port)" in problem.message
        assert problem.fix == "endpoints have `version`: v42 (`canary`)"
        registries.kubernetes.says(a_service("checkout", "10.0.0.1", version="v42"))
        await until(lambda: "left out" not in here.plane.status().problems[0].message)


async def test_all_instances_of_a_service_those_that_are_left_out_first(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await filled(site, registries, here)
        assert said(await here.plane.explain_service("checkout")) == (
            "checkout: 1 used, 1 left out\n"
            "INSTANCE             ADDRESS        SOURCE      PORT  STATE         WEIGHT\n"
            "pod shop/checkout-9  10.0.0.9       kubernetes  -     no-such-port  -       it has no port called http\n"
            "pod checkout-0       10.0.0.1:8080  kubernetes  80    healthy       1       version=v42\n"
        )
        everywhere = said(await here.plane.explain_service(""))
        assert everywhere.startswith("1 left out of all services\nSERVICE ")
        assert "checkout  pod shop/checkout-9" in everywhere
        for command, code in ((["checkout"], 0), ([], 0), (["chekout"], 1)):
            assert (await invoked(here, "explain", "service", *command)).exit_code == code
        assert said(await here.plane.explain_service("chekout")) == (
            "chekout: no source has such a service\n  did you mean checkout?\n"
        )
        assert "there is checkout" in said(await here.plane.explain_service("checkout.shop"))


async def test_a_name_with_a_dot_is_found_with_its_namespace_and_without(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        registries.kubernetes.says(a_service("web", "10.0.0.1", namespace="shop"))
        registries.consul.says(a_service("web.v2", "10.0.1.1"))
        await until(lambda: not here.plane.unready())
        for asked in ("web.shop", "web.v2", "web.v2.default"):
            report = await here.plane.explain_service(asked)
            assert (report.known, report.used) == (True, 1), asked


async def test_what_only_gets_requests_where_nothing_is_better_says_so(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        (port,) = a_service("web", "10.0.0.1", "10.0.0.2").ports
        ending, other = port.endpoints
        ending = replace(ending, health=Health.DRAINING)
        service = Service(ServiceName("default", "web"), (replace(port, endpoints=(ending, other)),))
        registries.kubernetes.says(service)
        registries.consul.says()
        await until(lambda: not here.plane.unready())
        line = "draining: it gets new requests only where nothing beside it is better"
        assert line in said(await here.plane.explain_endpoint("10.0.0.1"))
        assert line not in said(await here.plane.explain_endpoint("10.0.0.2"))


async def test_the_share_of_each_source(tmp_path: Path, registries: Registries) -> None:
    settings = {
        "services": None,
        "kubernetes": True,
        "consul": "http://127.0.0.1:8500",
        "source_weights": "consul=90,kubernetes=10",
    }
    async with Site(tmp_path, settings).running(ready=False) as here:
        registries.kubernetes.says(a_service("checkout", "10.0.0.1", "10.0.0.2"))
        registries.consul.says(a_service("checkout", "10.1.0.1", "10.1.0.2", "10.1.0.3"))
        await until(lambda: not here.plane.unready())
        route = await here.plane.explain_route(Request.parse("checkout"), None, None)
        assert route.destinations[0].sources == {"consul": 90.0, "kubernetes": 10.0}
        assert "consul 90%, kubernetes 10%" in said(route)
        service = said(await here.plane.explain_service("checkout"))
        assert service.startswith("checkout: 5 used, 0 left out; consul 90%, kubernetes 10% of the requests\n")
        endpoint = said(await here.plane.explain_endpoint("10.1.0.1"))
        assert "weight 1, given 6, so that consul gets 90% of the requests" in endpoint


async def test_endpoints_of_a_source_that_gets_nothing_are_not_counted_as_used(
    tmp_path: Path, registries: Registries
) -> None:
    settings = {
        "services": None,
        "kubernetes": True,
        "consul": "http://127.0.0.1:8500",
        "source_weights": "consul=1,kubernetes=0",
    }
    async with Site(tmp_path, settings).running(ready=False) as here:
        registries.kubernetes.says(a_service("checkout", "10.0.0.1", "10.0.0.2"), a_service("web", "10.0.5.1"))
        registries.consul.says(a_service("checkout", "10.1.0.1"))
        await until(lambda: not here.plane.unready())
        kubernetes = next(one for one in here.plane.status().sources if one.name == "kubernetes")
        assert (kubernetes.endpoints, kubernetes.left_out) == (1, {"weight-zero": 2})
        assert here.metric('swashplate_source_endpoints{source="kubernetes"} 1.0')
