"""`explain endpoint`: what became of every instance that was asked for, by the admin server and by the command."""

import json
from io import StringIO
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner

from discovery.left_out import LeftOut, Reason
from discovery.registry import Evidence
from swashplate.admin import AdminServer
from swashplate.cli import main
from swashplate.explain import text
from swashplate.explain.reports import EndpointReport
from tests.swashplate.invoking import invoked
from tests.swashplate.registries import Registries, a_service
from tests.swashplate.site import Running, Site, until

NOT_READY = LeftOut(
    "pod shop/checkout-9", "10.0.0.9", 8080, Reason.NOT_READY, "its readiness probe fails; `kubectl describe` it"
)


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Registries:
    return Registries(monkeypatch)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        tmp_path,
        settings={
            "services": None,
            "routes": None,
            "kubernetes": True,
            "kubernetes_namespaces": "shop,web",
            "consul": "http://127.0.0.1:8500",
            "consul_tag": "tbn-cluster",
        },
    )


async def filled(registries: Registries, here: Running) -> None:
    registries.kubernetes.says(a_service("checkout", "10.0.0.1", "10.0.0.2", version="v1"), checkout=NOT_READY)
    registries.consul.says(a_service("web", "10.0.0.1"))
    await until(lambda: not here.plane.unready())


def said(report: EndpointReport) -> str:
    out = StringIO()
    text.show(text.of_endpoint(report), out)
    return out.getvalue()


async def test_every_match_with_what_became_of_it(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await filled(registries, here)
        assert said(await here.plane.explain_endpoint("10.0.0.1")) == (
            "10.0.0.1:8080 (pod checkout-0): used for checkout:80, from kubernetes\n"
            "  healthy, weight 1\n"
            "  labels: version=v1\n"
            "10.0.0.1:8080 (pod web-0): used for web:80, from consul\n"
            "  healthy, weight 1\n"
        )


@pytest.mark.parametrize("asked", ["10.0.0.9", "10.0.0.9:8080", "checkout-9", "pod shop/checkout-9"])
async def test_one_that_is_left_out_says_why_and_what_to_do(site: Site, registries: Registries, asked: str) -> None:
    async with site.running(ready=False) as here:
        await filled(registries, here)
        report = await here.plane.explain_endpoint(asked)
    assert [(one.used, one.reason) for one in report.seen] == [(False, "not-ready")]
    assert said(report) == (
        "10.0.0.9:8080 (pod shop/checkout-9): not used for checkout, from kubernetes: not-ready\n"
        "  its readiness probe fails; `kubectl describe` it\n"
    )


async def test_one_that_nobody_has_says_what_is_watched_and_what_to_check(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await filled(registries, here)
        registries.consul.failed("the agent does not answer")
        report = await here.plane.explain_endpoint("10.9.9.9")
    assert report.seen == ()
    assert report.watched == (
        "kubernetes: scripted; the namespaces shop, web",
        "consul: scripted; instances with a tag tbn-cluster",
    )
    assert any("behind a Service that is watched (only the namespaces shop, web)?" in line for line in report.advice)
    assert "consul is not heard at the moment, so what is new there is not known: the agent does not answer" in (
        report.advice
    )


async def test_pods_by_label_are_asked_for_their_label(tmp_path: Path, registries: Registries) -> None:
    async with Site(tmp_path, {"kubernetes": True, "kubernetes_pods": True}).running(ready=False) as here:
        advice = (await here.plane.explain_endpoint("nobody")).advice
    assert any("has the pod the label tbn_cluster" in one for one in advice)
    assert not any("Service" in one for one in advice)


async def test_a_part_of_several_names_lists_them(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await filled(registries, here)
        report = await here.plane.explain_endpoint("checkout")
    assert report.advice[0] == (
        "several instances have checkout in their name: pod checkout-0, pod checkout-1, pod shop/checkout-9"
    )


async def test_a_removal_that_is_held_is_told(site: Site, registries: Registries) -> None:

    async with site.running(ready=False) as here:
        await filled(registries, here)
        registries.consul.says(a_service("other", "10.0.5.5"))
        registries.consul.lost("web", Evidence.FIRST)
        report = await here.plane.explain_endpoint("web-0")
    assert [(one.used, one.held) for one in report.seen] == [(True, True)]
    assert "consul takes something of this service away; held until confirmed" in said(report)


async def test_the_admin_server_answers_both_kinds(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await filled(registries, here)
        async with TestClient(TestServer(AdminServer(here.plane, here.metrics).application())) as client:
            answer = await (await client.get("/explain/endpoint", params={"of": "checkout-9"})).json()
            assert (answer["server"], answer["seen"][0]["reason"]) == ("here", "not-ready")
            query = [("target", "checkout/x"), ("method", "POST"), ("header", "x-a: 1"), ("node", "n")]
            routed = await (await client.get("/explain/route", params=query)).json()
            assert (routed["request"], routed["node"]) == ("POST checkout/x", "n")
            assert routed["destinations"][0]["endpoints"] == 2
            for path, error in (
                ("/explain/endpoint", "say which instance"),
                ("/explain/route", "say which request"),
                ("/explain/route?target=a%20b", "names no host"),
                ("/explain/route?target=a&header=b", "is no header"),
            ):
                refused = await client.get(path)
                assert refused.status == 400
                assert error in (await refused.json())["error"]


async def test_commands_say_it_and_end_with_1_where_something_is_wrong(site: Site, registries: Registries) -> None:
    async with site.running(ready=False) as here:
        await filled(registries, here)
        used = await invoked(here, "explain", "endpoint", "10.0.0.2")
        assert (used.exit_code, used.stdout.splitlines()[0]) == (
            0,
            "10.0.0.2:8080 (pod checkout-1): used for checkout:80, from kubernetes",
        )
        assert (await invoked(here, "explain", "endpoint", "checkout-9")).exit_code == 1
        assert (await invoked(here, "explain", "endpoint", "nobody")).exit_code == 1
        routed = await invoked(here, "explain", "route", "checkout/a", "-o", "json")
        assert routed.exit_code == 0
        assert json.loads(routed.stdout)["answer"] == "forwarded to checkout:80"
        lost = await invoked(here, "explain", "route", "chekout")
        assert lost.exit_code == 1
        assert "did you mean checkout?" in lost.stdout
        refused = await invoked(here, "explain", "route", "ftp://x")
        assert refused.exit_code == 2
        assert "is no request" in refused.stderr


def test_a_server_that_does_not_answer_is_exit_code_2() -> None:
    done = CliRunner().invoke(main, ["explain", "endpoint", "10.0.0.1", "--server", "127.0.0.1:1"])
    assert done.exit_code == 2
    assert "cannot connect" in done.stderr
