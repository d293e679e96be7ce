"""Timeouts, retries, faults, breakers, health: what a service's callers get when something goes wrong."""

import asyncio
import time

import pytest

from tests.e2e.harness.tour import Tour
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="session")]

ALL = {"all": {"app": "all"}}


async def test_timeouts(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        rules = [
            {"match": [{"path": "/fast"}], "to": "all", "timeout": "100ms"},
            {"match": [{"path": "/never"}], "to": "all", "timeout": "infinity"},
            {"to": "all"},
        ]
        routes = {"subsets": ALL, "defaults": {"timeout": "250ms"}, "rules": rules}
        await tour.serve("timeouts", upstream.endpoint(app="all"), routes=routes)
        assert (await tour.get("timeouts", "/fast?delay=0.01")).status == 200
        assert (await tour.get("timeouts", "/fast?delay=1.5")).status == 504
        assert (await tour.get("timeouts", "/?delay=2")).status == 504
        assert (await tour.get("timeouts", "/never?delay=0.6")).status == 200


async def test_retries(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        on_503 = {"attempts": 2, "on": [503]}
        slow = {"attempts": 1, "on": ["5xx"], "per_try": "150ms"}
        rules = [
            {"match": [{"path": "/never"}], "to": "all", "retry": {"attempts": 0}},
            {"match": [{"path": "/slow"}], "to": "all", "retry": slow, "timeout": "2s"},
            {"to": "all"},
        ]
        routes = {"subsets": ALL, "defaults": {"retry": on_503}, "rules": rules}
        await tour.serve("retries", upstream.endpoint(app="all"), routes=routes)

        assert (await tour.get("retries", "/?fail_first=2")).status == 200
        assert upstream.requests == 3
        assert (await tour.get("retries", "/?fail_first=3&other")).status == 503
        assert upstream.requests == 6
        assert (await tour.get("retries", "/?status=500")).status == 500
        assert upstream.requests == 7
        assert (await tour.get("retries", "/never?fail_first=1")).status == 503
        assert upstream.requests == 8
        start = time.monotonic()
        assert (await tour.get("retries", "/slow?delay=0.5")).status == 504
        assert time.monotonic() - start < 0.5
        assert upstream.requests == 10


async def test_an_endpoint_that_refuses_connections_is_not_noticed(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        gone = await Upstream("all").start()
        await gone.stop()
        rules = [{"to": "all", "retry": {"attempts": 3}}]
        endpoints = (upstream.endpoint(app="all"), gone.endpoint(app="all"))
        await tour.serve("refused", *endpoints, routes={"subsets": ALL, "rules": rules})
        replies = [await tour.get("refused") for _ in range(40)]
        assert {(reply.status, reply.headers["x-endpoint"]) for reply in replies} == {(200, upstream.address)}


async def test_faults(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        rules = [
            {"match": [{"path": "/abort"}], "to": "all", "fault": {"abort": 503, "percent": "100%"}},
            {"match": [{"path": "/delay"}], "to": "all", "fault": {"delay": "300ms", "percent": "100%"}},
            {"match": [{"path": "/half"}], "to": "all", "fault": {"abort": 500, "percent": "50%"}},
            {"to": "all"},
        ]
        await tour.serve("faults", upstream.endpoint(app="all"), routes={"subsets": ALL, "rules": rules})
        assert (await tour.get("faults", "/abort")).status == 503
        assert upstream.requests == 0
        start = time.monotonic()
        assert (await tour.get("faults", "/delay")).status == 200
        assert time.monotonic() - start > 0.25
        half = [(await tour.get("faults", "/half")).status for _ in range(200)]
        assert 60 < half.count(500) < 140
        assert (await tour.get("faults", "/")).status == 200


async def test_circuit_breaker(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        cluster = {"circuit_breaker": {"requests": 1, "pending": 1, "connections": 1}}
        routes = {"subsets": ALL, "rules": [{"to": "all"}], "cluster": cluster}
        await tour.serve("breaker", upstream.endpoint(app="all"), routes=routes)
        assert (await tour.get("breaker")).status == 200
        replies = await asyncio.gather(*(tour.get("breaker", "/?delay=0.3") for _ in range(8)))
        assert sorted({reply.status for reply in replies}) == [200, 503]


async def test_outlier_detection_leaves_a_failing_endpoint_out(tour: Tour) -> None:
    async with Upstream("good") as good, Upstream("bad") as bad:
        cluster = {"lb": "round_robin", "outlier": {"consecutive_5xx": 3, "max_ejected": "50%", "eject_for": "60s"}}
        rules = [{"match": [{"path": "/fail"}], "to": {"bad": "100%"}}, {"to": "all"}]
        subsets = {"bad": {"is": "bad"}, **ALL}
        endpoints = (good.endpoint(app="all"), bad.endpoint(app="all", **{"is": "bad"}))
        await tour.serve("outlier", *endpoints, routes={"subsets": subsets, "rules": rules, "cluster": cluster})
        cluster_name = "outlier/all"
        for _ in range(20):
            await tour.get("outlier", "/?status=500")

        async def ejected() -> bool:
            return await tour.envoy.stat(f"cluster.{cluster_name}.outlier_detection.ejections_active") == 1

        await until(ejected, "one of the two to be ejected")
        replies = [await tour.get("outlier") for _ in range(20)]
        assert len({reply.headers["x-endpoint"] for reply in replies}) == 1


async def test_a_removed_endpoint_gets_nothing_more_despite_active_health_checks(tour: Tour) -> None:
    async with Upstream("one") as one, Upstream("two") as two:
        cluster = {"health_check": {"path": "/healthz", "every": "200ms"}, "lb": "round_robin"}
        routes = {"subsets": ALL, "rules": [{"to": "all"}], "cluster": cluster}
        endpoints = (one.endpoint(app="all"), two.endpoint(app="all"))
        await tour.serve("checked", *endpoints, routes=routes)

        async def seen() -> set[str]:
            return {(await tour.get("checked")).subset for _ in range(8)}

        async def both() -> bool:
            return await seen() == {"one", "two"}

        async def only_two() -> bool:
            return await seen() == {"two"}

        await until(both, "both endpoints to be in use")
        tour.site.service("checked", two.endpoint(app="all"))
        await until(only_two, "the removed endpoint to be left")
