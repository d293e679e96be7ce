"""Kubernetes' API server is in trouble, and so may we be: requests go on to the pods that are there."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from swashplate.status import KUBERNETES
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.following import RECOVERED_S, Following
from tests.e2e.harness.pods import Pods, kubernetes_flags
from tests.e2e.harness.site import Site
from tests.e2e.harness.trouble import TROUBLES, trouble
from tests.e2e.harness.wait import until
from tests.registries.fault_proxy import FaultProxy
from tests.registries.kube_api import KubeApi, Namespace

pytestmark = [pytest.mark.envoy, pytest.mark.own_network]

log = logging.getLogger(__name__)

MOST_REQUESTS, MOST_A_SECOND = 30, 5.0
"""In the ten seconds or so that a trouble lasts, for three kinds of objects, from two processes in turn."""


class Fleet(Following):
    """Pods of the service `web`, a control plane with a store that asks for them through a proxy, and an Envoy."""

    def __init__(self, kube: KubeApi, namespace: Namespace, pods: Pods, proxy: FaultProxy, site: Site, envoy: Envoy):
        super().__init__(site, envoy, "web")
        self.kube = kube
        self.namespace = namespace
        self.pods = pods
        self.proxy = proxy


@asynccontextmanager
async def following(kube: KubeApi, directory: Path, envoy_binary: Path, account: str = "") -> AsyncIterator[Fleet]:
    """As a service account with the rights that are needed, or as the administrator."""
    namespace = await kube.namespace()
    await namespace.service("web")
    if account:
        await kube.apply(_rights(namespace.name, account))
    async with AsyncExitStack() as running:
        pods = await running.enter_async_context(Pods(namespace))
        await pods.more(2)
        await namespace.settled("web", *(pod.address for pod in pods.running))
        proxy = await running.enter_async_context(FaultProxy(kube.url, kube.certificates))
        token = directory / "token"
        token.write_text(await namespace.account(account) if account else kube.token)
        config = kube.kubeconfig_for(directory / "kubeconfig", token, server=proxy.url)
        site = Site(directory, sources=(), state=True, flags=kubernetes_flags(kube, namespace, config))
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, "delta"))
        await envoy.live()
        fleet = Fleet(kube, namespace, pods, proxy, site, envoy)
        await fleet.reached(pods.running, time.monotonic())
        yield fleet


@pytest_asyncio.fixture
async def fleet(kube: KubeApi, tmp_path: Path, newest_envoy: Path) -> AsyncIterator[Fleet]:
    async with following(kube, tmp_path, newest_envoy) as fleet:
        yield fleet


@pytest.mark.parametrize("kind", TROUBLES)
async def test_no_trouble_loses_an_endpoint_nor_does_our_own_restart_in_it(fleet: Fleet, kind: str) -> None:
    async with fleet.site.load("web", connections=2) as load:
        await load.more(150)
        begun = time.monotonic()
        async with trouble(kind, fleet.kube.server, fleet.proxy):
            await load.more(400)
            await fleet.unchanged(fleet.pods.running)
            await fleet.restarted()
            await fleet.unchanged(fleet.pods.running)
            await load.more(300)
        healed = time.monotonic()
        asked = [one for one in fleet.proxy.since(begun) if one.at < healed]
        if kind in ("killed", "stopped"):
            fleet.kube.renew_controllers()
        await fleet.pods.more(1)
        took = await fleet.reached(fleet.pods.running, time.monotonic(), RECOVERED_S)
        log.info("%s: %d requests in %.0f s, then well again in %.1f s", kind, len(asked), healed - begun, took)
        source = await fleet.source(KUBERNETES)
    assert load.failures() == []
    assert len(asked) <= MOST_REQUESTS + MOST_A_SECOND * (healed - begun)
    assert (source.state, source.error, source.held) == ("fresh", None, ())


@pytest.mark.parametrize("end", ["it comes back", "somebody says so"])
async def test_a_cluster_that_is_suddenly_empty_takes_nothing_away(fleet: Fleet, end: str) -> None:
    async def held() -> tuple[str, ...]:
        return await fleet.held(KUBERNETES)

    async def released() -> bool:
        return await held() == ()

    async with fleet.site.load("web", connections=2) as load:
        await load.more(150)
        await fleet.kube.restart(empty=True)
        assert await until(held, "the removal to be held", RECOVERED_S) == ("web",)
        await fleet.unchanged(fleet.pods.running)
        await fleet.restarted()
        await fleet.unchanged(fleet.pods.running)
        assert await until(held, "the removal to be held", RECOVERED_S) == ("web",)
        if end == "it comes back":
            await fleet.kube.namespace(fleet.namespace.name)
            for pod in fleet.pods.running:
                await pod.announce()
            await fleet.namespace.service("web")
            await until(released, "nothing to be held any more", RECOVERED_S)
            await fleet.unchanged(fleet.pods.running)
        await load.more(100)
    assert load.failures() == []
    if end == "somebody says so":
        assert await fleet.site.confirm(KUBERNETES) == ["web"]

        async def unknown() -> bool:
            async with fleet.site.load("web", connections=1) as asking:
                return {answer.status for answer in await asking.more(1)} == {404}

        await until(unknown, "nobody to know the service any more")


async def test_a_token_that_is_revoked_loses_nothing_and_a_new_one_in_its_file_is_taken(
    kube: KubeApi, tmp_path: Path, newest_envoy: Path
) -> None:
    async with following(kube, tmp_path, newest_envoy, account="reader") as fleet:

        async def refused() -> bool:
            fleet.proxy.cut()  # what was allowed once goes on being watched
            return "401" in ((await fleet.source(KUBERNETES)).error or "")

        async with fleet.site.load("web", connections=2) as load:
            await load.more(50)
            await fleet.namespace.revoke("reader")
            await until(refused, "the token to be refused", RECOVERED_S, every=1.0)
            await fleet.unchanged(fleet.pods.running)
            await fleet.restarted()
            await fleet.unchanged(fleet.pods.running)
            (fleet.site.directory / "token").write_text(await fleet.namespace.account("reader"))
            begun = time.monotonic()
            await fleet.pods.more(1)
            took = await fleet.reached(fleet.pods.running, begun, RECOVERED_S)
            log.info("with a new token well again in %.1f s", took)
        assert load.failures() == []


def _rights(namespace: str, account: str) -> str:
    return f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {account}, namespace: {namespace}}}
rules:
- {{apiGroups: [""], resources: [services, pods], verbs: [list, watch]}}
- {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {account}, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {account}}}
subjects: [{{kind: ServiceAccount, name: {account}, namespace: {namespace}}}]
"""
