"""Pods with real servers in them: an upstream at each pod's address, and what a kubelet would tell Kubernetes of it.

For tests in a network of their own (tests/registries/own_network.py).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.e2e.harness.upstream import Upstream
from tests.registries.kube_api import KubeApi, Namespace
from tests.registries.own_network import pod_addresses

PORT: Final = 8080


class Pod:
    """One pod of the service `app`. Its subset, in answers, is its name."""

    def __init__(self, namespace: Namespace, app: str, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.endpoint = f"{address}:{PORT}"
        self._namespace = namespace
        self._app = app
        self._upstream = Upstream(name, host=address)

    @property
    def requests(self) -> int:
        return self._upstream.requests

    async def start(self, *, ready: bool = True) -> None:
        await self._upstream.start(PORT)
        await self.announce(ready=ready)

    async def announce(self, *, ready: bool = True) -> None:
        """Kubernetes is told of it; once more, where it has forgotten."""
        await self._namespace.pod(self.name, self.address, app=self._app, ports={"http": PORT}, ready=ready)

    async def ready(self, ready: bool = True) -> None:
        await self._namespace.ready(self.name, ready)

    async def terminate(self) -> None:
        """It is asked to end, and serves on, as a pod with a preStop hook does."""
        await self._namespace.terminate(self.name)

    async def end(self) -> None:
        """Its server ends, answering what it was asked, and the pod is gone."""
        await self._upstream.stop()
        await self._namespace.remove(self.name)

    async def stop(self) -> None:
        """Its server ends; Kubernetes does not know."""
        await self._upstream.stop()


class Pods:
    """Pods of one service, each with a name and an address that none had before it."""

    def __init__(self, namespace: Namespace, app: str = "web") -> None:
        self.app = app
        self.running: list[Pod] = []
        self._namespace = namespace
        self._addresses: Iterator[str] = pod_addresses()

    async def more(self, count: int = 1, *, ready: bool = True) -> list[Pod]:
        """Starts that many more."""
        added = []
        for _ in range(count):
            address = next(self._addresses)
            pod = Pod(self._namespace, self.app, f"{self.app}-{address.rpartition('.')[2]}", address)
            self.running.append(pod)
            added.append(pod)
            await pod.start(ready=ready)
        return added

    async def end(self, *pods: Pod) -> None:
        """These end and are gone."""
        for pod in pods:
            await pod.end()
            self.running.remove(pod)

    async def __aenter__(self) -> "Pods":
        return self

    async def __aexit__(self, *_: object) -> None:
        for pod in self.running:
            await pod.stop()


def kubernetes_flags(kube: KubeApi, namespace: Namespace, kubeconfig: Path | None = None) -> tuple[str, ...]:
    """What makes `swashplate serve` follow one namespace, whose services then have their short names."""
    follow = ("--kubernetes", "true", "--kubeconfig", str(kubeconfig or kube.kubeconfig))
    return (*follow, "--kubernetes-namespaces", namespace.name, "--namespace", namespace.name)
