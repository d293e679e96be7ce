"""The reflector at a real API server: what it promises at the model, as far as a real one can be made to fail."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from discovery.kubernetes.batch import Batch
from discovery.kubernetes.client import Client, Timeouts
from discovery.kubernetes.credentials import CredentialSource
from discovery.kubernetes.errors import ApiError
from discovery.kubernetes.list_watch import ListWatch
from discovery.kubernetes.objects import ENDPOINT_SLICES, POD_METADATA, SERVICES, Key, Resource
from discovery.kubernetes.reflector import Reflector
from tests.e2e.harness.wait import until
from tests.registries.kube_api import KubeApi, Namespace, down

BRISK = Timeouts(connect_s=3.0, answer_s=3.0, whole_s=10.0)


class Followed:
    """A reflector that runs, and what it told of."""

    def __init__(self, client: Client, resource: Resource[Any], namespace: str, streams: bool) -> None:
        self.batches: list[Batch[Any]] = []
        self.reflector = Reflector(client, resource, namespace, on_batch=self.batches.append, ask_again_s=0.5)
        self.reflector._streams = streams

    @property
    def names(self) -> set[str]:
        return {key.name for key in self.reflector.objects}

    @property
    def confirmed(self) -> set[Key]:
        return {key for batch in self.batches for key in batch.confirmed}

    async def until(self, probe: Callable[[], object], what: str) -> None:
        async def asked() -> bool:
            return bool(probe())

        await until(asked, f"{what}; {self.reflector!r}", within=45.0)


@asynccontextmanager
async def following(
    kubeconfig: Path, resource: Resource[Any], namespace: str = "", *, streams: bool = True
) -> AsyncIterator[Followed]:
    async with Client(CredentialSource(kubeconfig), timeouts=BRISK) as client:
        followed = Followed(client, resource, namespace, streams)
        task = asyncio.create_task(followed.reflector.run())
        try:
            yield followed
        finally:
            task.cancel()
            await asyncio.wait([task])


async def services(ns: Namespace, *names: str) -> None:
    for name in names:
        await ns.service(name)


async def delete(ns: Namespace, name: str) -> None:
    await ns.api.call("DELETE", f"{ns.path}/services/{name}")


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "list"])
async def test_objects_come_and_go(kube: KubeApi, monkeypatch: pytest.MonkeyPatch, streams: bool) -> None:
    monkeypatch.setattr("discovery.kubernetes.list_watch.PAGE", 2)
    ns = await kube.namespace()
    await services(ns, "a", "b", "c", "d", "e")
    async with following(kube.kubeconfig, SERVICES, ns.name, streams=streams) as followed:
        await followed.until(lambda: len(followed.names) == 5, "all services")
        await services(ns, "f")
        await delete(ns, "a")
        await followed.until(lambda: followed.names == set("bcdef"), "what changed")
        assert followed.reflector._streams is streams
    assert [batch.live for batch in followed.batches] == [False, True, True]


async def test_slices_and_pods_are_read_as_the_server_writes_them(kube: KubeApi) -> None:
    ns = await kube.namespace()
    await ns.service("web")
    await ns.pod("web-1", "10.1.0.1", app="web")
    await ns.settled("web", "10.1.0.1")
    async with (
        following(kube.kubeconfig, ENDPOINT_SLICES, ns.name) as slices,
        following(kube.kubeconfig, POD_METADATA, ns.name) as pods,
    ):
        await slices.until(lambda: slices.names and pods.names, "both")
        (found,) = slices.reflector.objects.values()
        (endpoint,) = found.endpoints
        pod = pods.reflector.objects[Key(ns.name, "web-1")]
        assert (endpoint.addresses, endpoint.conditions.ready) == (("10.1.0.1",), True)
        assert endpoint.target_ref.uid == pod.metadata.uid
        assert pod.metadata.labels == {"app": "web"}
        assert found.metadata.labels["kubernetes.io/service-name"] == "web"


async def test_a_killed_server_costs_nothing_and_is_heard_again(kube: KubeApi) -> None:
    ns = await kube.namespace()
    await services(ns, "a", "b")
    async with following(kube.kubeconfig, SERVICES, ns.name) as followed:
        await followed.until(lambda: followed.names == {"a", "b"}, "the services")
        told = len(followed.batches)
        async with down(kube):
            await followed.until(lambda: followed.reflector.freshness.error, "the outage")
            assert followed.names == {"a", "b"}
        await services(ns, "c")
        await followed.until(lambda: followed.names == {"a", "b", "c"}, "the new one")
        await followed.until(lambda: not followed.reflector.freshness.error, "its recovery")
        gone = {key for batch in followed.batches[told:] for key, item in batch.changes.items() if item is None}
        assert not gone


async def test_a_hung_server_is_noticed_and_what_happened_after_it_is_seen(
    kube: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discovery.kubernetes.reflector.SILENCE_S", 3.0)
    ns = await kube.namespace()
    await services(ns, "a", "b")
    async with following(kube.kubeconfig, SERVICES, ns.name) as followed:
        await followed.until(lambda: followed.names == {"a", "b"}, "the services")
        with kube.server.paused():
            await followed.until(lambda: "no answer in time" in followed.reflector.freshness.error, "the silence")
            assert followed.names == {"a", "b"}
        await delete(ns, "a")
        await followed.until(lambda: followed.names == {"b"}, "the deletion")


async def test_a_server_that_comes_back_empty_confirms_nothing(make_kube: Callable[..., KubeApi]) -> None:
    kube = make_kube(controllers=False)
    ns = await kube.namespace("lost")
    await services(ns, "a", "b")
    async with following(kube.kubeconfig, SERVICES, ns.name) as followed:
        await followed.until(lambda: followed.names == {"a", "b"}, "the services")
        await kube.restart(empty=True)
        await followed.until(lambda: followed.reflector.doubted, "the doubt")
        assert followed.reflector.unconfirmed == {Key("lost", "a"), Key("lost", "b")}
        assert not followed.confirmed
        await kube.namespace("lost")
        await services(Namespace(kube, "lost"), "b")
        await followed.until(lambda: followed.confirmed == {Key("lost", "a")}, "the second list")
        assert followed.names == {"b"}


async def test_a_version_that_is_forgotten_is_expired(kube: KubeApi) -> None:
    async with Client(CredentialSource(kube.kubeconfig)) as client:
        source = ListWatch(client, SERVICES, "", "", "", lambda _: None)
        with pytest.raises(ApiError) as refused:
            async with source.watch("1", 10.0) as groups:
                await anext(groups)
    assert refused.value.expired


async def test_who_has_no_rights_is_told_which(kube: KubeApi) -> None:
    async with following(kube.nobody, ENDPOINT_SLICES, "default") as followed:
        await followed.until(lambda: followed.reflector.freshness.error, "the refusal")
        error = followed.reflector.freshness.error
    assert error.startswith("endpointslices.discovery.k8s.io in namespace default: 403 Forbidden: ")
    assert "`swashplate rbac`" in error
