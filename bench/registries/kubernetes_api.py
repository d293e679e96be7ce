"""A Kubernetes API as far as discovery asks: Services, EndpointSlices and pods' metadata, streamed and watched.

Run it as `python bench/registries/kubernetes_api.py PORT SERVICES`. Objects are as large as a real API server's, with
their managed fields. GET /change?i=K makes an endpoint of the service K unready, or ready again.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import uvloop
from aiohttp import web

ENDPOINTS: Final = 10
NAMESPACES: Final = 50
BOOKMARK_S: Final = 30.0
_MANAGED: Final = {
    "manager": "kube-controller-manager",
    "operation": "Update",
    "apiVersion": "v1",
    "time": "2026-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {
        "f:metadata": {"f:labels": {f"f:{key}": {} for key in ("app", "pod-template-hash", "version", "team")}},
        "f:spec": {"f:containers": {'k:{"name":"app"}': {f"f:{key}": {} for key in ("image", "ports", "resources")}}},
        "f:status": {f"f:{key}": {} for key in ("conditions", "containerStatuses", "hostIP", "phase", "podIPs")},
    },
}


def namespace_of(service: int) -> str:
    return f"n{service % NAMESPACES}"


def _meta(service: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": namespace_of(service),
        "uid": _uid(name),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [_MANAGED],
        **more,
    }


def _uid(name: str) -> str:
    return f"00000000-0000-4000-8000-{abs(hash(name)) % 10**12:012}"


def _pod_name(service: int, number: int) -> str:
    return f"service-{service}-6f7d8c9b5-{number:05}"


class Objects:
    """All objects, made anew when they are asked for: only what changed is kept."""

    def __init__(self, services: int) -> None:
        self.services = services
        self.unready: set[int] = set()

    def service(self, number: int) -> dict[str, Any]:
        app = {"app": f"service-{number}"}
        return {
            "kind": "Service",
            "apiVersion": "v1",
            "metadata": _meta(number, f"service-{number}", labels=app),
            "spec": {
                "type": "ClusterIP",
                "clusterIP": f"10.{96 + number // 62_500}.{number // 250 % 250}.{number % 250 + 1}",
                "clusterIPs": [f"10.{96 + number // 62_500}.{number // 250 % 250}.{number % 250 + 1}"],
                "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
                "selector": app,
            },
            "status": {"loadBalancer": {}},
        }

    def slice(self, number: int) -> dict[str, Any]:
        labels = {"kubernetes.io/service-name": f"service-{number}", "app": f"service-{number}"}
        return {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": _meta(number, f"service-{number}-abcde", labels=labels, generation=1),
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [self._endpoint(number, i) for i in range(ENDPOINTS)],
        }

    def _endpoint(self, number: int, i: int) -> dict[str, Any]:
        ready = i > 0 or number not in self.unready
        at = number * ENDPOINTS + i
        name = _pod_name(number, i)
        pod = {"kind": "Pod", "namespace": namespace_of(number), "name": name, "uid": _uid(name)}
        return {
            "addresses": [f"10.{at // 62_500}.{at // 250 % 250}.{at % 250 + 1}"],
            "conditions": {"ready": ready, "serving": ready, "terminating": False},
            "nodeName": f"node-{at % 500}",
            "zone": f"eu-1{'abc'[at % 3]}",
            "targetRef": pod,
        }

    def pod(self, number: int) -> dict[str, Any]:
        service, i = divmod(number, ENDPOINTS)
        labels = {
            "app": f"service-{service}",
            "pod-template-hash": "6f7d8c9b5",
            "version": f"v{i % 2}",
            "team": f"t{service % 40}",
        }
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"service-{service}-6f7d8c9b5", "uid": "0-0"}
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": _meta(
                service,
                _pod_name(service, i),
                labels=labels,
                annotations={"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
                ownerReferences=[owner],
            ),
        }

    def all(self, plural: str) -> Iterable[dict[str, Any]]:
        made: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
            "services": (self.service, self.services),
            "endpointslices": (self.slice, self.services),
            "pods": (self.pod, self.services * ENDPOINTS),
        }
        make, count = made[plural]
        return map(make, range(count))


class Api:
    """Streams every object, then what changes. Lists are not served: who asks for one has lost its watch."""

    def __init__(self, services: int) -> None:
        self._objects = Objects(services)
        self._revision = 1000
        self._watches: dict[str, list[asyncio.Queue[bytes]]] = {}
        # Before anybody asks, so that nobody waits for it.
        self._initial = {
            plural: [self._line("ADDED", body) for body in self._objects.all(plural)]
            for plural in ("services", "endpointslices", "pods")
        }

    def _line(self, type_: str, body: dict[str, Any]) -> bytes:
        body["metadata"]["resourceVersion"] = str(self._revision)
        return json.dumps({"type": type_, "object": body}, separators=(",", ":")).encode() + b"\n"

    async def watch(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rpartition("/")[2]
        if request.query.get("sendInitialEvents") != "true":
            raise web.HTTPGone(text=json.dumps({"kind": "Status", "code": 410, "reason": "Expired"}))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._watches.setdefault(plural, []).append(queue)
        with contextlib.suppress(ConnectionError):
            for some in batched(self._initial[plural]):
                await response.write(b"".join(some))
            await response.write(self._bookmark({"k8s.io/initial-events-end": "true"}))
            while True:
                try:
                    line = await asyncio.wait_for(queue.get(), BOOKMARK_S)
                except TimeoutError:
                    line = self._bookmark({})
                await response.write(line)
        return response

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        metadata = {"resourceVersion": str(self._revision), "annotations": annotations}
        return json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n"

    async def change(self, request: web.Request) -> web.Response:
        number = int(request.query["i"])
        self._objects.unready ^= {number}
        self._revision += 1
        line = self._line("MODIFIED", self._objects.slice(number))
        for queue in self._watches.get("endpointslices", ()):
            queue.put_nowait(line)
        return web.Response()


def batched(lines: list[bytes], size: int = 50) -> Iterable[list[bytes]]:
    return (lines[i : i + size] for i in range(0, len(lines), size))


async def serve(port: int, services: int) -> None:
    api = Api(services)
    app = web.Application()
    app.router.add_get("/change", api.change)
    for path in ("/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/pods"):
        app.router.add_get(path, api.watch)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
