"""Rotor's documented examples at a real API server and a real Consul agent."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from discovery.consul.settings import ConsulSettings
from discovery.consul.source import ConsulSource
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.source import KubernetesSource
from discovery.registry import Feed, Registry
from discovery.source import Source
from tests.e2e.harness.wait import until
from tests.examples.rotor_examples import TAG, Clusters, Example, assert_same, clusters, examples
from tests.registries.consul_agent import ConsulAgent
from tests.registries.kube_api import KubeApi, Namespace

PODS = [example for example in examples() if example.kind == "kubernetes"]
# One agent is one node: what is of another node, or of its metadata, is in test_rotor.py alone.
INSTANCES = [
    example
    for example in examples()
    if example.kind == "consul" and not any("node" in one for one in example.given["instances"])
]


@pytest.mark.parametrize("example", PODS, ids=str)
async def test_pods_of_a_real_api_server(kube: KubeApi, example: Example) -> None:
    namespace = await kube.namespace()
    for manifest in example.given["pods"]:
        await make(namespace, manifest)
    settings = KubernetesSettings(
        kubeconfig=kube.kubeconfig, namespaces=(namespace.name,), pods=True, **example.settings
    )

    def source(feed: Feed) -> Source:
        return KubernetesSource(
            settings, feed, store=None, now=time.time, on_error=lambda _: None, on_routes=lambda _: None
        )

    async with following(source) as registry:
        await until_same(registry, example.here)


@pytest.mark.parametrize("example", INSTANCES, ids=str)
async def test_instances_of_a_real_consul(consul: ConsulAgent, example: Example) -> None:
    made = []
    for number, one in enumerate(example.given["instances"]):
        said = {key: value for key, value in one.items() if key in ("address", "port", "tags", "meta", "status")}
        made.append(await consul.register(one["service"], instance=f"rotor-{number}", **said))
    try:
        settings = ConsulSettings(consul.url, tag=TAG, **example.settings)

        def source(feed: Feed) -> Source:
            return ConsulSource(settings, feed, store=None, now=time.time, on_error=lambda _: None)

        async with following(source) as registry:
            await until_same(registry, on_one_node(example.here))
    finally:
        for instance in made:
            await consul.deregister(instance)


@asynccontextmanager
async def following(make: Callable[[Feed], Source]) -> AsyncIterator[Registry]:
    registry = Registry(["rotor"], lambda _: None, time.time)
    running = asyncio.create_task(make(registry.feed("rotor")).run())
    try:
        yield registry
        assert not running.done(), running
    finally:
        running.cancel()
        await asyncio.wait([running])


async def until_same(registry: Registry, expected: Clusters) -> None:
    """Of the clusters that are expected; other tests have services at the same agent."""

    def found() -> Clusters:
        named = clusters(registry.snapshot)
        return {name: named[name] for name in expected if name in named}

    async def same() -> bool:
        return registry.ready and {name: sorted(one) for name, one in found().items()} == hosts

    hosts = {name: sorted(one) for name, one in expected.items()}
    await until(same, f"{hosts}; there is {found()}, {registry.statuses()}")
    assert_same(found(), expected)


def on_one_node(expected: Clusters) -> Clusters:
    """Without what names the node, which is the agent's here."""
    return {
        name: {
            place: {key: value for key, value in labels.items() if key != "node-id"}
            for place, labels in endpoints.items()
        }
        for name, endpoints in expected.items()
    }


async def make(namespace: Namespace, manifest: Mapping[str, Any]) -> None:
    """A pod, and what a kubelet says of it; where the example leaves out what the API server wants, that is added."""
    containers = [{"image": "none", **one} for one in manifest["spec"]["containers"]]
    node = manifest["spec"].get("nodeName", "node-1")
    await namespace.api.node(node)
    body = {"metadata": manifest["metadata"], "spec": {"containers": containers, "nodeName": node}}
    await namespace.api.call("POST", f"{namespace.path}/pods", body)
    said = manifest["status"]
    usual = {"image": "none", "imageID": "", "restartCount": 0}
    states = {"running": {"startedAt": "2026-01-01T00:00:00Z"}, "waiting": {"reason": "ContainerCreating"}}
    statuses = [
        {**usual, **one, "state": {state: states[state] for state in one["state"]}}
        for one in said["containerStatuses"]
    ]
    hosts = {"hostIP": said["hostIP"], "hostIPs": [{"ip": said["hostIP"]}]} if "hostIP" in said else {}
    status = {"podIP": said["podIP"], "podIPs": [{"ip": said["podIP"]}], **hosts, "containerStatuses": statuses}
    path = f"{namespace.path}/pods/{manifest['metadata']['name']}/status"
    await namespace.api.call("PATCH", path, {"status": {"phase": "Running", **status}})
