"""The rate limit service by itself: what it answers over gRPC and HTTP, and when it says that it is ready."""

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from grpc import aio
from structlog.testing import capture_logs

import envoy_api
from ratelimit.host.choice import has_native
from ratelimit.host.service import PATH, RESPONSE
from swashplate.cli import main
from swashplate.status import StatusReport
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.valkey import Valkey
from tests.swashplate.ratelimit_site import BROKEN, DEADLINE_S, SHOP, Running, Site, request

NAMES = ("", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService")
HOSTS = ("grpcio", *(("native",) if has_native() else ()))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize("host", HOSTS)
async def test_limits_are_kept(site: Site, host: str) -> None:
    site.write()
    async with site.serving(ratelimit_host=host) as here:
        await here.ready()
        assert here.server.host_kind == host
        codes = [(await here.ask({"client": "web"})).overall_code for _ in range(4)]
        assert codes == [1, 1, 1, 2]
        assert (await here.ask({"client": "other"})).statuses[0].limit_remaining == 2


@pytest.mark.parametrize("host", HOSTS)
async def test_the_first_call_meets_limits(site: Site, host: str) -> None:
    """The port is there only once they have been read: nobody is refused for being early."""
    site.write()
    async with site.serving(ratelimit_host=host) as here:
        assert (await here.ask({"client": "web"})).overall_code == 1


@pytest.mark.parametrize("host", HOSTS)
async def test_health_follows_the_limits_by_every_name(site: Site, host: str) -> None:
    async with site.serving(ratelimit_host=host) as here:
        for name in NAMES:
            assert await here.health(name) == "NOT_SERVING"
        status, text = await here.page("/healthcheck")
        assert status == 500
        assert text.startswith("limit-files: ")
        with pytest.raises(aio.AioRpcError) as raised:
            await here.ask({"client": "web"})
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        site.write()
        await here.ready()
        for name in NAMES:
            assert await here.health(name) == "SERVING"
        assert await here.page("/healthcheck") == (200, "OK")
        with pytest.raises(aio.AioRpcError) as raised:
            await here.health("something.else")
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND
        here.server.limiter.stopping()
        assert await here.health("ratelimit") == "NOT_SERVING"


async def test_it_is_not_ready_without_its_store(site: Site) -> None:
    site.write()
    async with site.serving(redis=f"redis://127.0.0.1:{free_port()}") as here:

        async def said() -> bool:
            return any("store of counters" in reason for reason in here.server.unready)

        await until(said, "the store is missed", within=DEADLINE_S)
        assert await here.health("") == "NOT_SERVING"
        assert (await here.page("/healthcheck"))[0] == 500


async def test_a_probe_that_does_not_mind_the_store(site: Site) -> None:
    """All replicas have one store: a readiness probe that minds it takes them all away, and nobody is left to answer
    by on_store_failure."""
    async with site.serving(redis=f"redis://127.0.0.1:{free_port()}") as here:
        status, text = await here.page("/readyz")
        assert status == 503
        assert text.startswith("limit-files: ")
        assert (await here.page("/healthz")) == (200, "ok\n")
        site.write()

        async def ready() -> bool:
            status, text = await here.page("/readyz")
            return status == 200 and text.startswith("ok\nstore of counters: ")

        await until(ready, "ready but for its store", within=DEADLINE_S)
        assert (await here.page("/healthz")) == (200, "ok\n")
        here.server.limiter.stopping()
        assert await here.page("/readyz") == (503, "shutting down\n")


async def test_a_broken_edit_leaves_the_last_good_limits_and_is_told(site: Site) -> None:
    site.write()
    with capture_logs() as logs:
        async with site.serving() as here:
            await here.ready()
            site.write(BROKEN)

            async def counted() -> bool:
                return 'swashplate_ratelimit_domain_stale{domain="shop"} 1' in (await here.page("/metrics"))[1]

            await until(counted, "the domain is stale", within=DEADLINE_S)
            assert (await here.ask({"client": "web"})).statuses[0].current_limit.requests_per_unit == 3
            assert await here.health("") == "SERVING"
            metrics = (await here.page("/metrics"))[1]
            assert "ratelimit_service_config_load_error 1\n" in metrics
            assert "ratelimit_service_config_load_success 1\n" in metrics
    events = [log["event"] for log in logs]
    assert "limits in force" in events
    assert any(event.startswith("file has an error") for event in events)


async def test_an_edit_is_in_force_without_a_restart(site: Site) -> None:
    site.write()
    async with site.serving() as here:
        await here.ready()
        site.write(SHOP.replace("requests_per_unit: 3", "requests_per_unit: 7"))

        async def edited() -> bool:
            return "shop.client: unit=HOUR requests_per_unit=7" in (await here.page("/rlconfig"))[1]

        await until(edited, "the edit", within=DEADLINE_S)
        assert (await here.ask({"client": "web"})).statuses[0].limit_remaining == 6


async def test_what_was_good_outlives_a_restart(site: Site, tmp_path: Path) -> None:
    site.write()
    async with site.serving(state=tmp_path / "state") as here:
        await here.ready()
    site.write(BROKEN)
    async with site.serving(state=tmp_path / "state") as here:
        await here.ready()
        assert (await here.ask({"client": "web"})).statuses[0].current_limit.requests_per_unit == 3


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "bob"}]}]}, 200, "OK"),
        ({"domain": "shop", "descriptors": [{"entries": [{"key": "a"}], "limit": {"unit": 9}}]}, 400, "unit"),
        ({"domain": "shop"}, 400, "no descriptors"),
        ({"domain": "shop", "descriptor": []}, 400, "did you mean descriptors?"),
        ([1], 400, "it must be a mapping"),
    ],
)
async def test_json_is_answered_as_envoyproxy_ratelimit_does(site: Site, body: Any, status: int, said: str) -> None:
    site.write()
    async with site.serving() as here:
        await here.ready()
        got, text = await here.page("/json", "POST", data=json.dumps(body))
        assert got == status
        assert said in text


async def test_json_over_the_limit_is_429_with_the_answer(site: Site) -> None:
    site.write()
    body = {"domain": "shop", "hitsAddend": 4, "descriptors": [{"entries": [{"key": "client", "value": "web"}]}]}
    async with site.serving() as here:
        await here.ready()
        status, text = await here.page("/json", "POST", json=body)
    assert status == 429
    answer = json.loads(text)
    assert answer["overallCode"] == "OVER_LIMIT"
    (one,) = answer["statuses"]
    assert one["currentLimit"] == {"requestsPerUnit": 3, "unit": "HOUR"}
    assert one["durationUntilReset"].endswith("s")


async def test_json_before_there_are_limits_is_503(site: Site) -> None:
    body = {"domain": "shop", "descriptors": [{"entries": [{"key": "client", "value": "web"}]}]}
    async with site.serving() as here:
        assert (await here.page("/json", "POST", json=body))[0] == 503


async def counted(here: Running, query: str = "") -> list[tuple[str, int]]:
    status, text = await here.page(f"/counters?domain=shop{query}")
    assert status == 200, text
    return sorted(
        (" ".join(f"{entry['key']}={entry['value']}" for entry in counter["entries"]), counter["hits"])
        for counter in json.loads(text)["counters"]
    )


async def test_counters_are_listed_and_begin_anew(site: Site) -> None:
    site.write()
    async with site.serving(ratelimit_counters=True) as here:
        await here.ready()
        await here.ask({"client": "web"}, {"user": "bob", "path": "/a"})
        await here.ask({"client": "other"}, {"user": "bob", "path": "/b"})
        everything = [("client=other", 1), ("client=web", 1), ("user=bob path=/a", 1), ("user=bob path=/b", 1)]
        assert await counted(here) == everything
        assert await counted(here, "&entry=client") == everything[:2]
        assert await counted(here, "&entry=user=bob") == everything[2:]
        assert await counted(here, "&entry=user=bob&entry=path=/b") == everything[3:]
        assert len(await counted(here, "&most=2")) == 2
        status, text = await here.page("/counters?domain=shop&entry=user=bob", "DELETE")
        assert (status, json.loads(text)) == (200, {"reset": 2})
        assert await counted(here) == everything[:2]
        status, text = await here.page("/counters/reset?domain=shop", "POST")
        assert (status, json.loads(text)) == (200, {"reset": 2})
        assert (await here.ask({"client": "web"})).statuses[0].limit_remaining == 2


async def test_shared_counters_are_told_by_the_limits_that_there_are(site: Site) -> None:
    site.write()
    async with (
        Valkey() as valkey,
        site.serving(redis=valkey.url, ratelimit_keys="compatible", ratelimit_counters=True) as here,
    ):
        await here.ready()
        await here.ask({"client": "web"}, {"user": "bob", "path": "/a"})
        await valkey.ask("SET", "shop_other_x_1790000040", 7)
        listed = await asyncio.to_thread(CliRunner().invoke, main, [*LIST, "--server", here.http, "shop"])
        shown = await asyncio.to_thread(
            CliRunner().invoke, main, [*SHOW, "--server", here.http, "shop", "client=web"]
        )
    rows = [line.split() for line in listed.stdout.splitlines()]
    assert ["client=web", "3600", "1", "3"] in [row[:4] for row in rows]
    assert ["user=bob", "path=/a", "3600", "1", "10"] in [row[:5] for row in rows]
    assert ["shop_other_x_1790000040", "?", "7", "?", "never"] in rows
    assert "no limit in force has this counter" in listed.stderr
    assert [line.split()[:2] for line in shown.stdout.splitlines()[1:]] == [["client=web", "3600"]]


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("?domain=shop&most=many", 400), ("?domain=shop&entry=user&entry=path=/a", 400)],
)
async def test_what_is_asked_of_counters_must_make_sense(site: Site, query: str, status: int) -> None:
    async with site.serving(ratelimit_counters=True) as here:
        assert (await here.page(f"/counters{query}"))[0] == status


async def test_counters_are_nobodys_but_the_operators(site: Site) -> None:
    site.write()
    async with site.serving() as here:
        assert (await here.page("/counters?domain=shop"))[0] == 404
    async with site.serving(ratelimit_counters=True) as here:
        foreign = {"Host": "evil.example:8080"}
        assert (await here.page("/counters?domain=shop", headers=foreign))[0] == 403
        other_site = {"Sec-Fetch-Site": "cross-site"}
        assert (await here.page("/counters/reset?domain=shop", "POST", headers=other_site))[0] == 403


async def test_explanations_come_from_the_limits_in_force(site: Site) -> None:
    site.write()
    async with site.serving() as here:
        await here.ready()
        status, text = await here.page("/explain?domain=shop&entry=user=bob&entry=path=/a")
        assert status == 200
        assert json.loads(text)["explanation"]["limits"][0]["path"] == "user_bob.path"
        assert (await here.page("/explain"))[0] == 400


LIST = ("ratelimit", "counters", "list")
SHOW = ("ratelimit", "counters", "show")

FAILING = """\
domain: shop
descriptors:
  - key: allowed
    rate_limit: {unit: hour, requests_per_unit: 3, on_store_failure: allow}
  - key: denied
    rate_limit: {unit: hour, requests_per_unit: 3, on_store_failure: deny}
"""


@pytest.mark.parametrize("host", HOSTS)
async def test_a_store_that_hangs_is_no_reason_to_miss_a_deadline(site: Site, host: str) -> None:
    """Calls that come while the store takes no more turns are answered as their limits say, too."""
    site.write(FAILING)
    async with (
        Valkey() as valkey,
        site.serving(ratelimit_host=host, redis=valkey.url, redis_timeout="300ms") as here,
        aio.insecure_channel(here.listen) as channel,
    ):
        await here.ready()
        call = channel.unary_unary(PATH)

        async def code(key: str, number: int) -> int:
            answer = await call(request({key: str(number)}), timeout=DEADLINE_S)
            overall: int = envoy_api.message_class(RESPONSE).FromString(answer).overall_code
            return overall

        def ask(number: int) -> "asyncio.Future[list[int]]":
            return asyncio.gather(code("allowed", number), code("denied", number))

        async def in_flight() -> bool:
            return here.server.store.status.in_flight >= len(asked)

        valkey.hang()
        asked = [ask(0)]
        await until(in_flight, "a turn in flight")
        asked += [ask(number) for number in range(1, 20)]
        assert await asyncio.gather(*asked) == [[1, 2]] * 20
        valkey.go_on()
        await here.ready()
        assert (await here.ask({"denied": "x"})).overall_code == 1


async def test_what_callers_got_for_a_failing_store_is_told_though_it_answers_again(site: Site) -> None:
    site.write(FAILING + "  - key: neither\n    rate_limit: {unit: hour, requests_per_unit: 3}\n")
    with capture_logs() as logs:
        async with Valkey() as valkey, site.serving(redis=valkey.url, redis_timeout="300ms") as here:
            await here.ready()
            valkey.hang()
            await asyncio.gather(
                *(here.ask({"allowed": str(number)}) for number in range(3)), here.ask({"denied": "x"})
            )
            with pytest.raises(aio.AioRpcError):
                await here.ask({"neither": "x"})
            valkey.go_on()
            await here.ready()
            assert here.server.store.status.error == ""
    (told,) = (log for log in logs if log["event"] == "checks were not decided")
    assert (told["allowed"], told["denied"], told["failed_calls"]) == (3, 1, 1)
    assert told["place"] in told["reason"]


async def test_status_and_confirm_are_asked_as_of_any_server(site: Site, tmp_path: Path) -> None:
    site.write()
    site.write(SHOP.replace("shop", "bar"), "bar.yaml")
    async with site.serving(state=tmp_path / "state") as here:
        await here.ready()
    (site.limits / "bar.yaml").unlink()
    site.write(BROKEN)
    async with site.serving(state=tmp_path / "state") as here:

        async def seen() -> bool:
            return bool(here.server.limiter.source and here.server.limiter.source.held_files)

        await until(seen, "the missing file", within=DEADLINE_S)
        report = StatusReport.model_validate_json((await here.page("/status"))[1])
        (server,) = report.servers
        assert (server.listen, server.ready) == (here.listen, True)
        files, store = report.sources
        assert (files.name, files.services, len(files.held)) == ("limit-files", 2, 1)
        assert (store.name, store.error) == ("counters", None)
        assert [(problem.code, problem.in_force) for problem in report.problems if problem.code == "L004"] == [
            ("L004", "last good")
        ]
        assert (await here.page("/confirm?source=route-files", "POST"))[0] == 404
        assert (await here.page("/confirm?source=limit-files&only=shop", "POST"))[0] == 404
        status, text = await here.page("/confirm?source=limit-files", "POST")
        assert (status, json.loads(text)) == (200, {"confirmed": ["bar"]})
        assert "bar.client" not in (await here.page("/rlconfig"))[1]


async def test_a_directory_without_limits_is_named_in_the_log_and_by_health(site: Site) -> None:
    empty = site.limits.parent / "empty"
    empty.mkdir()
    with capture_logs() as logs:
        async with site.serving(ratelimit_config=empty) as here:

            async def is_told() -> bool:
                return any(line["event"].startswith("every call is UNAVAILABLE") for line in logs)

            await until(is_told, "the log to say so", within=DEADLINE_S)
            assert str(empty) in "".join(here.server.unready)
