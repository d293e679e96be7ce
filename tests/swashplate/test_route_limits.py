"""Limits of route files where they are counted: in the control plane's process, and in a service by itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import structlog

import envoy_api
from mesh.mesh import Mesh, Routes
from mesh.rate_limit import DOMAIN, Allowance, RateLimit
from mesh.rule import ServiceRoutes
from mesh.service import ServiceName
from swashplate.address import Address
from swashplate.explain.request import Request
from swashplate.rate_limit_server import RateLimitServer
from swashplate.route_limits import RouteLimits
from tests.e2e.harness.wait import until as until_true
from tests.swashplate.site import ROUTES, Site, until
from tests.translate.meshes import routes, rule, to_service

METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
REQUEST = "envoy.service.ratelimit.v3.RateLimitRequest"
RESPONSE = envoy_api.message_class("envoy.service.ratelimit.v3.RateLimitResponse")
OK, OVER_LIMIT = 1, 2

LIMITED = f"{ROUTES}  rate_limits: [{{name: total, allow: 2/year}}]\n"
SLIDING = "{name: total, allow: 9/year, algorithm: sliding_window}"


async def ask(target: str, hits: int = 1) -> Any:
    async with grpc.aio.insecure_channel(target) as channel:
        call = channel.unary_unary(METHOD, envoy_api.encode, RESPONSE.FromString)
        entry = {"key": "limit", "value": "default/checkout/total"}
        descriptor = {"entries": [entry], "hits_addend": {"value": hits}}
        return await call(envoy_api.message(REQUEST, domain=DOMAIN, descriptors=[descriptor]))


async def in_force(target: str, requests: int) -> None:
    async def allows_it() -> bool:
        return await allowed(target) == requests

    await until_true(allows_it, f"{requests} to be allowed")


async def codes(target: str, count: int) -> list[int]:
    return [(await ask(target)).overall_code for _ in range(count)]


async def allowed(target: str) -> int:
    """What the limit allows as far as its service knows now; 0 where it has none. Counts nothing."""
    (status,) = (await ask(target, hits=0)).statuses
    return int(status.current_limit.requests_per_unit)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write_all()
    site.write("routes/checkout.yaml", LIMITED)
    return site


async def test_the_control_plane_counts_for_the_envoys_that_it_configures(site: Site) -> None:
    async with site.running() as here:
        target = str(here.listen)
        assert await codes(target, 4) == [OK, OK, OVER_LIMIT, OVER_LIMIT]
        site.write("routes/checkout.yaml", LIMITED.replace("2/year", "5/year"))
        await in_force(target, 5)
        assert await codes(target, 2) == [OK, OVER_LIMIT]


async def test_a_service_by_itself_follows_the_same_files(site: Site) -> None:
    settings = site.made_settings().model_copy(
        update={"ratelimit_listen": "127.0.0.1:0", "ratelimit_host": "grpcio", "state": site.root / "state"}
    )
    server = RateLimitServer(settings, structlog.get_logger())
    target, _ = await server.start(Address("127.0.0.1", 0))
    try:
        await until(lambda: not server.unready)
        assert await codes(target, 3) == [OK, OK, OVER_LIMIT]
        site.write("routes/checkout.yaml", LIMITED.replace("2/year", "9/year"))
        await in_force(target, 9)
        site.write("routes/checkout.yaml", LIMITED.replace("2/year", "2/yaer"))
        await in_force(target, 9)
        site.write("routes/checkout.yaml", ROUTES)
        await in_force(target, 0)
    finally:
        await server.stop()


async def test_where_no_limits_are_known_callers_are_told_so_until_there_are_some(site: Site) -> None:
    site.write("routes/checkout.yaml", ROUTES)
    async with site.running() as here:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(str(here.listen))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        site.write("routes/checkout.yaml", LIMITED)

        async def answered() -> bool:
            try:
                return await allowed(str(here.listen)) == 2
            except grpc.aio.AioRpcError:
                return False

        await until_true(answered, "the first limit to be in force")


def limit(name: str, requests: int = 1) -> RateLimit:
    return RateLimit(name, Allowance(requests, "minute"))


def file(name: str, *limits: RateLimit) -> ServiceRoutes:
    return routes(name, replace(rule(to_service(name)), rate_limits=limits))


def test_a_change_keeps_the_limits_of_other_services() -> None:
    limits, mesh = RouteLimits(), Mesh()

    def after(*files: ServiceRoutes, gone: str = "") -> bool:
        nonlocal mesh
        changes: dict[ServiceName, Routes | None] = {each.service: each for each in files}
        changes |= {ServiceName("default", gone): None} if gone else {}
        mesh = mesh.with_changes({}, changes)
        return limits.update(mesh, changes)

    assert after(file("a", limit("default/a/x")), file("b", limit("default/b/x")), file("c"))
    (before, other) = limits.tree.descriptors
    assert [each.value for each in (before, other)] == ["default/a/x", "default/b/x"]
    assert not after(file("a", limit("default/a/x")), file("c"))
    assert after(file("b", limit("default/b/x", 9)))
    assert limits.tree.descriptors[0] is before
    assert limits.tree.descriptors[1] is not other
    assert after(gone="a")
    assert [each.value for each in limits.tree.descriptors] == ["default/b/x"]
    assert after(file("b"))
    assert limits.tree.descriptors == ()


def test_what_no_tree_takes_is_told_and_costs_nobody_else() -> None:
    limits = RouteLimits()
    good, bad = file("a", limit("default/a/x")), file("b", limit("default/b/x", -1))
    mesh = Mesh().with_changes({}, {good.service: good, bad.service: bad})
    assert limits.update(mesh, mesh.routes)
    assert [each.value for each in limits.tree.descriptors] == ["default/a/x"]
    assert list(limits.failed) == [bad.service]
    mended = file("b", limit("default/b/x"))
    assert limits.update(mesh.with_changes({}, {mended.service: mended}), [mended.service])
    assert limits.failed == {}


async def test_a_limit_of_a_route_file_is_counted_once_however_many_values_it_tells_apart(site: Site) -> None:
    by_user = "{allow: 2/year, per: [{header: x-user}], values: {root: 9/year, guest: 1/year}}"
    site.write("routes/checkout.yaml", f"{ROUTES}  rate_limits: [{{name: total, allow: 2/year}}, {by_user}]\n")
    with structlog.testing.capture_logs() as logs:
        async with site.running() as here:
            await in_force(str(here.listen), 2)
    assert [line["limits"] for line in logs if line["event"] == "limits in force"] == [2]


async def test_what_cannot_share_its_counters_is_an_error_and_never_another_limit(site: Site) -> None:
    update = {"ratelimit_listen": "127.0.0.1:0", "ratelimit_host": "grpcio", "ratelimit_keys": "compatible"}
    with structlog.testing.capture_logs() as logs:
        server = RateLimitServer(site.made_settings().model_copy(update=update), structlog.get_logger())
        target, _ = await server.start(Address("127.0.0.1", 0))
        try:
            await in_force(target, 2)
            site.write(
                "routes/checkout.yaml", f"{ROUTES}  rate_limits: [{SLIDING}, {{name: other, allow: 3/year}}]\n"
            )
            (report,) = await until(lambda: tuple(server.limiter.problem_reports()))
            assert (report.severity, report.code, report.file) == (
                "error",
                "L011",
                str(site.root / "routes/checkout.yaml"),
            )
            assert "`default/checkout/total`" in report.message
            assert report.line == ROUTES.count("\n") + 1
            assert "algorithm: sliding_window" in report.text
            assert report.message.endswith("before stays in force")
            assert report.in_force == "rest"
            assert server.limiter.limits[DOMAIN] == 2
            assert await allowed(target) == 2  # the last that could be kept, not 9 in a fixed window
            assert [line["code"] for line in logs if line["log_level"] == "error"] == ["L011"]
            assert [line["limits"] for line in logs if line["event"] == "limits in force"] == [1, 2]
            text = b"".join([piece async for piece in server.metrics()]).decode()
            assert 'swashplate_ratelimit_file_problems{severity="error"} 1' in text
            site.write("routes/checkout.yaml", LIMITED)
            await until(lambda: not server.limiter.problems)
        finally:
            await server.stop()


async def test_what_never_could_share_its_counters_is_not_in_force(site: Site) -> None:
    site.write("routes/checkout.yaml", f"{ROUTES}  rate_limits: [{SLIDING}]\n")
    update = {"ratelimit_listen": "127.0.0.1:0", "ratelimit_host": "grpcio", "ratelimit_keys": "compatible"}
    server = RateLimitServer(site.made_settings().model_copy(update=update), structlog.get_logger())
    target, _ = await server.start(Address("127.0.0.1", 0))
    try:
        (problem,) = await until(lambda: server.limiter.problems)
        assert problem.message.endswith("the limit `default/checkout/total` is not in force")
        assert server.limiter.limits[DOMAIN] == 0
        assert await allowed(target) == 0
    finally:
        await server.stop()


async def test_explain_route_says_which_limit_is_not_counted_as_it_is_written(site: Site) -> None:
    site.write("routes/checkout.yaml", f"{ROUTES}  rate_limits: [{SLIDING}, {{name: other, allow: 3/year}}]\n")
    site.settings["ratelimit_keys"] = "compatible"
    async with site.running() as here:
        assert here.plane.limits is not None
        limiter = here.plane.limits.limiter
        await until(lambda: limiter.refused)
        report = await here.plane.explain_route(Request.parse("checkout/", "GET", []), None, None)
        assert {line.partition(":")[0] for line in report.details if line.startswith("limit ")} == {
            "limit default/checkout/other",
            "limit default/checkout/total",
        }
        (note,) = (note for note in report.notes if "as it is written" in note)
        assert note.startswith("the limit default/checkout/total is not counted as it is written: `algorithm`")
