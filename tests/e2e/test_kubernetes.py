"""Pods and a real Envoy: what becomes ready gets requests at once, what goes gets none and loses none."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.following import Following
from tests.e2e.harness.pods import Pods, kubernetes_flags
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until
from tests.registries.kube_api import KubeApi, Namespace

pytestmark = [pytest.mark.envoy, pytest.mark.own_network]

CHECKED = {
    "subsets": {"all": {"app": "web"}},
    "rules": [{"to": "all"}],
    "cluster": {"health_check": {"path": "/healthz", "every": "200ms"}},
}

log = logging.getLogger(__name__)


class Fleet(Following):
    """The service `web` in a namespace of its own, a control plane that follows it, and an Envoy that calls it."""

    def __init__(self, namespace: Namespace, pods: Pods, site: Site, envoy: Envoy) -> None:
        super().__init__(site, envoy, "web")
        self.namespace = namespace
        self.pods = pods


@pytest_asyncio.fixture
async def fleet(kube: KubeApi, tmp_path: Path, newest_envoy: Path) -> AsyncIterator[Fleet]:
    namespace = await kube.namespace()
    await namespace.service("web")
    async with AsyncExitStack() as running:
        pods = await running.enter_async_context(Pods(namespace))
        site = Site(tmp_path, sources=("routes",), flags=kubernetes_flags(kube, namespace))
        await pods.more(1)
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(newest_envoy, "delta"))
        await envoy.live()
        fleet = Fleet(namespace, pods, site, envoy)
        await fleet.reached(pods.running, time.monotonic())
        yield fleet


async def test_a_pod_made_ready_is_an_endpoint_within_a_second(fleet: Fleet) -> None:
    (pod,) = await fleet.pods.more(1, ready=False)
    for _ in range(3):
        begun = time.monotonic()
        await pod.ready()
        took = await fleet.reached(fleet.pods.running, begun)
        log.info("from ready to Envoy: %.3f s", took)
        begun = time.monotonic()
        await pod.ready(False)
        took = await fleet.reached(fleet.pods.running[:1], begun)
        log.info("from not ready to out of Envoy: %.3f s", took)


@pytest.mark.parametrize("routes", [{}, CHECKED], ids=["", "with active health checks"])
async def test_what_is_gone_is_out_within_a_second(fleet: Fleet, routes: dict[str, Any]) -> None:
    if routes:
        await _checked(fleet, routes)
    pods = [*fleet.pods.running, *await fleet.pods.more(2)]
    await fleet.reached(pods, time.monotonic())

    begun = time.monotonic()
    await pods[0].end()
    log.info("from deleted to out of Envoy: %.3f s", await fleet.reached(pods[1:], begun))
    begun = time.monotonic()
    for pod in pods[1:]:
        await fleet.namespace.remove(pod.name)
    log.info("from scaled to zero to none in Envoy: %.3f s", await fleet.emptied(begun))
    served = [pod.requests for pod in pods[1:]]
    async with fleet.site.load("web", connections=1) as load:
        assert {answer.status for answer in await load.more(5)} == {503}
    if not routes:
        assert [pod.requests for pod in pods[1:]] == served
    assert (await fleet.site.status()).in_force


async def _checked(fleet: Fleet, routes: dict[str, Any]) -> None:
    """Writes the routes and waits until Envoy checks the pods' health."""
    fleet.site.route("web", routes)
    fleet.cluster = "web/all"

    async def checked() -> bool:
        return await fleet.envoy.stat("cluster.web/all.health_check.success") > 0

    await until(checked, "Envoy to check the pods' health")


async def test_a_rolling_restart_of_ten_pods_costs_no_request(fleet: Fleet) -> None:
    """As a Deployment with its defaults, whose pods go on for a second after they are asked to end."""
    await fleet.pods.more(9)
    old = list(fleet.pods.running)
    await fleet.reached(old, time.monotonic())
    async with fleet.site.load("web", connections=8) as load:
        await load.more(100)
        for pod in old:
            (new,) = await fleet.pods.more(1, ready=False)
            await new.ready()
            await pod.ready(False)
            await pod.terminate()
            rest = [other for other in fleet.pods.running if other is not pod]
            await fleet.reached(rest, time.monotonic())
            await fleet.pods.end(pod)
        since = time.monotonic()
        await load.more(200)
    assert load.failures() == []
    assert load.reconnects == 0
    served = {answer.subset for answer in load.since(since)}
    assert served == {pod.name for pod in fleet.pods.running}
    assert {answer.subset for answer in load.answers} >= {pod.name for pod in old}
    log.info("%d requests, none failed", len(load.answers))


async def test_a_pod_that_is_asked_to_end_is_drained(fleet: Fleet) -> None:
    (pod,) = await fleet.pods.more(1)
    await fleet.reached(fleet.pods.running, time.monotonic())
    async with fleet.site.load("web", connections=4) as load:
        await load.in_force(lambda answer: answer.subset == pod.name, time.monotonic())
        await pod.terminate()
        await load.over(lambda answer: answer.subset == pod.name, time.monotonic())
        assert await fleet.envoy.hosts(fleet.cluster) == {
            fleet.pods.running[0].endpoint: "HEALTHY",
            pod.endpoint: "DRAINING",
        }
    assert load.failures() == []
