"""The source at a real API server, whose controllers make the slices, with the rights that `rbac` prints."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discovery.kubernetes.rbac import rules
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.source import KubernetesSource
from discovery.left_out import Reason
from discovery.registry import Registry
from mesh.service import Endpoint, Health, Locality, Protocol, ServiceName
from operator_files.store import LastGoodStore
from tests.e2e.harness.wait import until
from tests.registries.fixtures import unique
from tests.registries.kube_api import KubeApi, Namespace, down


class Life:
    """One life of a server at that API server."""

    def __init__(self, settings: KubernetesSettings, store: LastGoodStore | None = None) -> None:
        self.registry = Registry(["kubernetes"], lambda _: None, time.time)
        self.feed = self.registry.feed("kubernetes")
        self.errors: list[str] = []
        self.source = KubernetesSource(
            settings,
            self.feed,
            store=store,
            now=time.time,
            on_error=self.errors.append,
            on_routes=lambda _: None,
        )

    def endpoints(self, name: ServiceName) -> dict[str, Endpoint]:
        service = self.registry.services.get(name)
        return {one.address: one for port in service.ports for one in port.endpoints} if service else {}

    def health(self, name: ServiceName) -> dict[str, Health]:
        return {address: one.health for address, one in self.endpoints(name).items()}

    async def until(self, holds: Callable[[], bool], what: str, within: float = 15.0) -> None:
        async def probe() -> bool:
            return holds()

        await until(probe, f"{what}; {self.errors} {self.registry.statuses()}", within)


@asynccontextmanager
async def life(settings: KubernetesSettings, store: LastGoodStore | None = None) -> AsyncIterator[Life]:
    one = Life(settings, store)
    running = asyncio.create_task(one.source.run())
    try:
        yield one
        assert not running.done(), running
    finally:
        running.cancel()
        await asyncio.wait([running])
        await one.source.keep()


async def allowed(kube: KubeApi, ns: Namespace, tmp_path: Path, **settings: Any) -> tuple[KubernetesSettings, str]:
    """These settings for an account that has exactly the rights for them, and the account's name."""
    token = await ns.account("swashplate")
    kubeconfig = kube.kubeconfig_for(tmp_path / "kubeconfig", token)
    wanted = KubernetesSettings(kubeconfig=kubeconfig, **settings)
    await kube.apply(rules(wanted, namespace=ns.name))
    return wanted, f"system:serviceaccount:{ns.name}:swashplate"


@pytest.mark.parametrize("mode", ["all", "no labels", "named", "selected", "pods"])
async def test_the_printed_rights_are_enough_and_none_is_refused(kube: KubeApi, tmp_path: Path, mode: str) -> None:
    mark = unique("mesh")
    ns = await kube.namespace(labels={"mesh": mark})
    await ns.service("web")
    await ns.pod("web-1", "10.1.0.1", app="web", labels={"version": "v1", "tbn_cluster": "web"})
    await _containers_run(ns, "web-1")
    await ns.settled("web", "10.1.0.1")
    settings: dict[str, dict[str, Any]] = {
        "all": {},
        "no labels": {"pod_labels": False},
        "named": {"namespaces": (ns.name,)},
        "selected": {"namespace_selector": f"mesh={mark}"},
        "pods": {"pods": True},
    }
    wanted, account = await allowed(kube, ns, tmp_path, **settings[mode])
    web = ServiceName(ns.name, "web")
    async with life(wanted) as one:
        await one.until(lambda: list(one.endpoints(web)) == ["10.1.0.1"], f"web in mode {mode}")
        labels = dict(one.endpoints(web)["10.1.0.1"].labels)
        assert labels.get("version") == (None if mode == "no labels" else "v1")
        await one.until(lambda: one.registry.ready, "everything to be told of")
        assert one.errors == []
        assert one.source.notes == ()
    assert {request.status for request in kube.requests(account)} <= {200}


async def test_the_command_in_a_refusal_gives_the_right_to_pods(kube: KubeApi, tmp_path: Path) -> None:
    ns = await kube.namespace()
    await ns.service("web")
    await ns.pod("web-1", "10.1.0.1", app="web", labels={"version": "v1"})
    await ns.settled("web", "10.1.0.1")
    without, _ = await allowed(kube, ns, tmp_path, namespaces=(ns.name,), pod_labels=False)
    wanted = replace(without, pod_labels=True)
    web = ServiceName(ns.name, "web")
    async with life(wanted) as one:
        await one.until(lambda: bool(one.source.freshness.error), "the refusal")
        assert (one.registry.services, one.source.freshness.ready) == ({}, False)
        flags = f"--kubernetes-namespaces {ns.name} --service-account {ns.name}/swashplate"
        assert f"`swashplate rbac {flags} | kubectl apply -f -` gives the rights" in one.source.freshness.error
        await kube.apply(rules(wanted, namespace=ns.name))
        await one.until(lambda: one.source.freshness.ready, "the right to be noticed", within=60)
        assert ("version", "v1") in one.endpoints(web)["10.1.0.1"].labels


async def test_a_rolling_restart_is_followed_at_once(kube: KubeApi) -> None:
    ns = await kube.namespace()
    await kube.node("node-eu", zone="eu-1a")
    grpc = {"name": "api", "port": 9000, "targetPort": "http", "appProtocol": "grpc"}
    await ns.service("web", grpc, labels={"a": "b"})
    web = ServiceName(ns.name, "web")
    settings = KubernetesSettings(kubeconfig=kube.kubeconfig, namespaces=(ns.name,))
    async with life(settings) as one:
        await one.until(lambda: web in one.registry.services, "the service")
        await ns.pod("web-1", "10.1.0.1", "fd00::1", app="web", labels={"version": "v1"}, node="node-eu")
        await one.until(lambda: one.health(web) == {"10.1.0.1": Health.HEALTHY}, "a ready pod")
        (port,) = one.registry.services[web].ports
        assert (port.number, port.protocol) == (9000, Protocol.GRPC)
        endpoint = port.endpoints[0]
        assert endpoint.locality == Locality(zone="eu-1a")
        assert (endpoint.node, endpoint.instance) == ("node-eu", "pod web-1")
        assert endpoint.labels >= {("app", "web"), ("version", "v1")}
        assert one.registry.services[web].addresses
        await ns.pod("web-2", "10.1.0.2", app="web", ready=False)
        await one.until(lambda: bool(one.feed.left_out), "the reason of a pod that is not ready")
        assert {(left.instance, left.reason) for left in one.feed.left_out[web]} == {("pod web-2", Reason.NOT_READY)}
        await ns.ready("web-2")
        await one.until(lambda: len(one.health(web)) == 2, "the second pod")
        await ns.terminate("web-1")
        await one.until(lambda: one.health(web).get("10.1.0.1") is Health.DRAINING, "draining")
        await ns.remove("web-1")
        await one.until(lambda: one.health(web) == {"10.1.0.2": Health.HEALTHY}, "the first pod to be gone")
        await ns.label("web-2", version="v2")
        await one.until(lambda: ("version", "v2") in one.endpoints(web)["10.1.0.2"].labels, "the new label")
        await kube.call("DELETE", f"{ns.path}/services/web")
        await one.until(lambda: web not in one.registry.services, "the service to be gone")


async def test_an_outage_and_a_restart_during_it_lose_nothing(kube: KubeApi, tmp_path: Path) -> None:
    ns = await kube.namespace()
    await ns.service("web")
    await ns.pod("web-1", "10.1.0.1", app="web")
    await ns.settled("web", "10.1.0.1")
    web = ServiceName(ns.name, "web")
    settings = KubernetesSettings(kubeconfig=kube.kubeconfig, namespaces=(ns.name,))
    with LastGoodStore(tmp_path / "state") as store:
        async with life(settings, store) as one:
            await one.until(lambda: list(one.endpoints(web)) == ["10.1.0.1"], "the endpoint")
            async with down(kube):
                await one.until(lambda: bool(one.source.freshness.error), "the outage to be noticed")
                assert list(one.endpoints(web)) == ["10.1.0.1"]
            await one.until(lambda: not one.source.freshness.error, "the end of the outage", within=60)
            assert list(one.endpoints(web)) == ["10.1.0.1"]
        async with down(kube), life(settings, store) as one:
            assert list(one.endpoints(web)) == ["10.1.0.1"]
            assert one.registry.ready


async def _containers_run(ns: Namespace, pod: str) -> None:
    """As a kubelet says it of each container."""
    container = {"name": "main", "ready": True, "restartCount": 0, "image": "none", "imageID": "none"}
    status = {"containerStatuses": [{**container, "state": {"running": {}}}]}
    await ns.api.call("PATCH", f"{ns.path}/pods/{pod}/status", {"status": status})
