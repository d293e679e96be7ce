"""An API server that is back is noticed within seconds however long it was away; and nothing is hammered for that."""

import asyncio

import pytest

from discovery.kubernetes.errors import ApiError, KubernetesError, UnreachableError
from discovery.kubernetes.objects import Service
from discovery.kubernetes.presence import PATIENCE_S, RETRY_LIMIT_S, Presence
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.life import Life, cluster_of, scenario
from tests.kubernetes.double.seat import run
from tests.kubernetes.manifests import endpoint, pod_metadata, service, slice_

AWAY = [
    UnreachableError("cannot connect"),
    UnreachableError("the connection was closed before an answer"),
    ApiError(429, "TooManyRequests", "says the test"),
    ApiError(500, "InternalError", "says the test"),
    ApiError(503, "ServiceUnavailable", "says the test"),
]
RECOVERED_S = RETRY_LIMIT_S + 0.1


def checkout() -> Cluster:
    return cluster_of(service(), slice_(endpoint("10.0.0.1", "pod-1")), pod_metadata("pod-1"))


def asked(cluster: Cluster, since: float) -> int:
    return sum(api.count(since=since) for api in cluster.all())


@pytest.mark.parametrize("fault", AWAY, ids=str)
@pytest.mark.parametrize("away_s", [7, 59, 600, 601.5])
def test_what_changed_while_the_server_was_away_is_known_seconds_after_its_return(
    fault: KubernetesError, away_s: float
) -> None:
    async def life() -> None:
        cluster = checkout()
        async with Life(cluster) as here:
            await asyncio.sleep(10)
            cluster.fault(fault)
            await asyncio.sleep(away_s)
            assert here.hosts() == {"checkout": ["10.0.0.1"]}
            cluster.put(slice_(endpoint("10.0.0.2", "pod-1")))
            cluster.fault(None)
            await asyncio.sleep(RECOVERED_S)
            assert here.hosts() == {"checkout": ["10.0.0.2"]}

    run(life)


@pytest.mark.parametrize("fault", AWAY, ids=str)
def test_an_outage_costs_a_bounded_rate_of_questions(fault: KubernetesError) -> None:
    async def life() -> None:
        cluster = checkout()
        async with Life(cluster) as here:
            await asyncio.sleep(10)
            cluster.fault(fault)
            await asyncio.sleep(60)
            begun = here.now()
            await asyncio.sleep(600)
            assert cluster.presence.count(since=begun) / 10 <= 24, "a minute, of the cheap ones"
            assert (asked(cluster, begun) - cluster.presence.count(since=begun)) / 10 <= 3 * 9, "of the others"

    run(life)


def test_a_server_that_is_there_and_fails_everything_else_is_not_asked_more_often_for_that() -> None:
    async def life() -> None:
        cluster = checkout()
        async with Life(cluster) as here:
            await asyncio.sleep(10)
            cluster.fault(AWAY[-1])
            cluster.presence.fault = None
            await asyncio.sleep(60)
            begun = here.now()
            await asyncio.sleep(600)
            others = asked(cluster, begun) - cluster.presence.count(since=begun)
            assert others / 10 <= 3 * 4, "a minute"
            assert cluster.presence.count(since=begun) <= others

    run(life)


@scenario
async def test_a_server_that_comes_and_goes_is_not_hammered() -> None:
    cluster = checkout()
    async with Life(cluster) as here:
        await asyncio.sleep(10)
        begun = here.now()
        for number in range(600):
            cluster.fault(AWAY[0] if number % 2 else None)
            await asyncio.sleep(1)
        assert asked(cluster, begun) / 10 <= 250, "a minute"
        assert here.hosts() == {"checkout": ["10.0.0.1"]}


@scenario
async def test_who_was_told_when_to_come_back_does_not_come_sooner() -> None:
    cluster = checkout()
    async with Life(cluster):
        await asyncio.sleep(10)
        cluster.fault(ApiError(503, "ServiceUnavailable", "says the test", retry_after_s=60))
        await asyncio.sleep(5)
        cluster.fault(None)
        before = cluster.of(Service).count()
        await asyncio.sleep(50)
        assert cluster.of(Service).count() == before
        await asyncio.sleep(10)
        assert cluster.of(Service).count() > before


@scenario
async def test_a_connection_of_the_time_when_it_was_away_is_given_up_at_its_return() -> None:
    there = [False, False, True]

    async def answers() -> bool:
        return there.pop(0)

    presence = Presence(lambda low, high: high)
    running = asyncio.create_task(presence.run(answers))
    begun = Life.now()
    with pytest.raises(TimeoutError):
        async with presence.unanswered(40):
            await asyncio.sleep(1000)
    assert Life.now() - begun == pytest.approx(PATIENCE_S + 1 + 2)
    running.cancel()
    await asyncio.wait([running])


@scenario
async def test_a_slow_answer_of_a_server_that_is_there_is_waited_for() -> None:
    asked: list[float] = []

    async def answers() -> bool:
        asked.append(Life.now())
        return True

    presence = Presence(lambda low, high: high)
    running = asyncio.create_task(presence.run(answers))
    async with presence.unanswered(40):
        await asyncio.sleep(30)
    assert len(asked) == 1
    with pytest.raises(TimeoutError):
        async with presence.unanswered(40):
            await asyncio.sleep(1000)
    running.cancel()
    await asyncio.wait([running])


@scenario
async def test_a_return_between_a_failure_and_its_wait_is_not_missed() -> None:
    there = [False, True]

    async def answers() -> bool:
        return there.pop(0)

    presence = Presence(lambda low, high: high)
    running = asyncio.create_task(presence.run(answers))
    since = presence.returns
    presence.doubt()
    await asyncio.sleep(3)
    begun = Life.now()
    await presence.rest(30, since)
    assert Life.now() == begun
    await presence.rest(30, presence.returns)
    assert Life.now() == pytest.approx(begun + 30)
    running.cancel()
    await asyncio.wait([running])
