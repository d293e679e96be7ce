"""A real Kubernetes API server with the controllers that make endpoint slices. No kubelet: tests say what pods do."""

import json
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

import yaml

from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.registries.build import APISERVER, CONTROLLERS
from tests.registries.http import RefusedError, call
from tests.registries.server import Server

CORE: Final = "/api/v1"
DISCOVERY: Final = "/apis/discovery.k8s.io/v1"
CONTROLLED: Final = "endpointslice-controller,namespace-controller,garbage-collector-controller"
"""Slices of services; what is in a deleted namespace; what belonged to a deleted object, as slices to a service."""

_AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata", "omitStages": ["RequestReceived", "ResponseStarted"]}],
}
_names = count(1)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the server has answered in full; a watch is one once it has ended."""

    user: str
    verb: str
    uri: str
    status: int


class KubeApi:
    """Everything is in `directory`, whose path must be short: unix sockets lie in it.

    Started by `start` and `wait` (or `up`); stopped by `stop`. `server` may be killed, paused and started by itself;
    the controllers find it again. `flags` are kube-apiserver's.
    """

    def __init__(self, directory: Path, *, controllers: bool = True, flags: Sequence[str] = ()) -> None:
        self.directory = directory
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = directory / "kubeconfig"
        self.nobody = directory / "kubeconfig-nobody"
        policy = directory / "audit.yaml"
        policy.write_text(yaml.safe_dump(_AUDIT))
        self._audit = directory / "audit.log"
        audit = (f"--audit-policy-file={policy}", f"--audit-log-path={self._audit}")
        command = [APISERVER.path, "--dir", directory, "--port", str(self.port), "--", *audit, *flags]
        self.server = Server(command, directory / "apiserver.out", lambda server: "READY https" in server.text())
        self._controllers = _controllers(self.kubeconfig, directory) if controllers else None
        self._tls: ssl.SSLContext | None = None

    def start(self) -> None:
        """Starts the server and waits until it is up. The controllers follow a moment later: `Namespace.settled`."""
        self.server.start()
        self.server.wait()
        if self._controllers is not None:
            self._controllers.start()

    def stop(self) -> None:
        if self._controllers is not None:
            self._controllers.kill()
        self.server.stop()

    async def restart(self, *, empty: bool = False) -> None:
        """Ends the server as a crash does and starts it again, `empty` with nothing of what was stored.

        The controllers do not live through that: they go on watching from a revision that is far in the future now.
        """
        self.server.kill()
        if empty:
            rmtree(self.directory / "etcd")
        self.server.start()
        await self.server.up()
        if empty:
            self.renew_controllers()

    def renew_controllers(self) -> None:
        """Starts them anew. After an outage they would take up to half a minute, or more, before they ask again."""
        if self._controllers is not None:
            self._controllers.kill()
            self._controllers.start()

    @property
    def token(self) -> str:
        """The administrator's."""
        return (self.directory / "admin.token").read_text()

    @property
    def certificates(self) -> Path:
        """The server's certificate, which is its own authority, and its key: apiserver.crt, apiserver.key."""
        return self.directory / "certs"

    async def call(
        self, method: str, path: str, body: object = None, *, token: str = "", patch: str = "merge-patch+json"
    ) -> Any:
        """A call as the administrator, or with the token given. Raises RefusedError."""
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self.certificates / "apiserver.crt")
        headers = {"authorization": f"Bearer {token or self.token}"}
        if method == "PATCH":
            headers["content-type"] = f"application/{patch}"
        return await call(method, self.url + path, body, headers=headers, tls=self._tls)

    async def apply(self, text: str) -> None:
        """Server-side apply of YAML documents of any kind, as `kubectl apply --server-side -f -` does it."""
        for document in yaml.safe_load_all(text):
            if document is None:
                continue
            group, place = document["apiVersion"], document["metadata"].get("namespace")
            root = f"/apis/{group}" if "/" in group else f"/api/{group}"
            scope = f"/namespaces/{place}" if place else ""
            kind, name = document["kind"].lower() + "s", document["metadata"]["name"]
            path = f"{root}{scope}/{kind}/{name}?fieldManager=tests&force=true"
            await self.call("PATCH", path, document, patch="apply-patch+yaml")

    async def namespace(self, name: str = "", labels: Mapping[str, str] | None = None) -> "Namespace":
        """A new namespace; by default with a name that nothing else in this server has."""
        made = name or f"ns-{next(_names)}"
        body = {"metadata": {"name": made, "labels": dict(labels or {})}}
        await self.call("POST", f"{CORE}/namespaces", body)
        return Namespace(self, made)

    async def node(self, name: str, *, region: str = "", zone: str = "") -> None:
        """A node, if it is not there yet. Endpoint slices take the zone of a pod from its node."""
        labels = {"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone}
        body = {"metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value}}}
        try:
            await self.call("POST", f"{CORE}/nodes", body)
        except RefusedError as refused:
            if refused.status != 409:
                raise

    def kubeconfig_for(self, path: Path, token: str | Path, *, server: str = "") -> Path:
        """Writes a kubeconfig with that token, or token file, perhaps for another address of the server."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"tokenFile": str(token)} if isinstance(token, Path) else {"token": token}
        config["clusters"][0]["cluster"]["server"] = server or self.url
        path.write_text(yaml.safe_dump(config))
        return path

    def requests(self, user: str = "") -> Iterator[Request]:
        """What was asked so far, by that user or by all. An account is `system:serviceaccount:NAMESPACE:NAME`."""
        if not self._audit.exists():
            return
        for line in self._audit.read_text().splitlines():
            event = json.loads(line)
            name = event["user"]["username"]
            if user in ("", name):
                status = event.get("responseStatus", {}).get("code", 0)
                yield Request(name, event["verb"], event["requestURI"], status)


def _controllers(kubeconfig: Path, directory: Path) -> Server:
    command = [
        CONTROLLERS.path,
        *(
            f"--{name}={kubeconfig}"
            for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        ),
        *("--leader-elect=false", f"--controllers={CONTROLLED}"),
        *("--bind-address=127.0.0.1", "--secure-port=0", f"--cert-dir={directory / 'controllers'}"),
    ]
    return Server(command, directory / "controllers.out", lambda _: True)


class Namespace:
    """Objects in one namespace. Bodies are the API's own, shortened by what a test rarely cares for."""

    def __init__(self, api: KubeApi, name: str) -> None:
        self.api = api
        self.name = name
        self.path = f"{CORE}/namespaces/{name}"

    async def service(
        self,
        name: str,
        *ports: Mapping[str, Any],
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """A Service for the pods labelled app=name, from port 80 to the one named http, unless told otherwise."""
        usual = {"name": "http", "port": 80, "targetPort": "http"}
        body = {
            "metadata": {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
            "spec": {"selector": {"app": name}, "ports": [dict(port) for port in ports or (usual,)], **spec},
        }
        await self.api.call("POST", f"{self.path}/services", body)

    async def pod(
        self,
        name: str,
        *ips: str,
        app: str = "",
        labels: Mapping[str, str] | None = None,
        ports: Mapping[str, int] | None = None,
        node: str = "node-1",
        ready: bool = True,
    ) -> None:
        """A pod that runs on a node with these addresses. It is one of the service `app`.

        Kubernetes refuses loopback addresses in endpoint slices: see the README for ones that traffic reaches.
        """
        await self.api.node(node)
        named = (ports or {"http": 8080}).items()
        container = {
            "name": "main",
            "image": "none",
            "ports": [{"name": port, "containerPort": number} for port, number in named],
        }
        spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 30}
        said = {**({"app": app} if app else {}), **(labels or {})}
        await self.api.call("POST", f"{self.path}/pods", {"metadata": {"name": name, "labels": said}, "spec": spec})
        await self._status(name, ready, ips)

    async def ready(self, pod: str, ready: bool = True) -> None:
        """Sets the pod's readiness, as a kubelet does after a probe."""
        await self._status(pod, ready)

    async def _status(self, pod: str, ready: bool, ips: Sequence[str] = ()) -> None:
        state = "True" if ready else "False"
        conditions = [{"type": name, "status": state} for name in ("Ready", "ContainersReady")]
        addresses = {"podIP": ips[0], "podIPs": [{"ip": ip} for ip in ips]} if ips else {}
        container = {
            "name": "main", "image": "none", "imageID": "", "restartCount": 0, "started": True, "ready": ready,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }  # fmt: skip
        status = {"phase": "Running", "conditions": conditions, "containerStatuses": [container], **addresses}
        await self.api.call("PATCH", f"{self.path}/pods/{pod}/status", {"status": status})

    async def label(self, pod: str, **labels: str | None) -> None:
        """Sets a pod's labels; None removes one."""
        await self.api.call("PATCH", f"{self.path}/pods/{pod}", {"metadata": {"labels": labels}})

    async def terminate(self, pod: str) -> None:
        """Deletes it as kubectl does: it is terminating, and serves, until `remove`."""
        await self.api.call("DELETE", f"{self.path}/pods/{pod}")

    async def remove(self, pod: str) -> None:
        """It is gone, as a kubelet says when the last container has ended."""
        await self.api.call("DELETE", f"{self.path}/pods/{pod}?gracePeriodSeconds=0")

    async def slices(self, service: str) -> list[dict[str, Any]]:
        """The EndpointSlices that the controller has made for it."""
        path = f"{DISCOVERY}/namespaces/{self.name}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
        found: list[dict[str, Any]] = (await self.api.call("GET", path))["items"]
        return found

    async def ready_addresses(self, service: str) -> set[str]:
        """The addresses of the service's endpoints that the slices call ready."""
        endpoints = [endpoint for part in await self.slices(service) for endpoint in part["endpoints"] or ()]
        ready = [endpoint for endpoint in endpoints if endpoint["conditions"].get("ready", True)]
        return {address for endpoint in ready for address in endpoint["addresses"]}

    async def settled(self, service: str, *addresses: str) -> None:
        """Waits until exactly these are ready in the service's slices. After an outage of the API server the
        controller may take half a minute, or more, before it asks again."""

        async def same() -> bool:
            return await self.ready_addresses(service) == set(addresses)

        await until(same, f"the slices of {service} to have {addresses}", within=90)

    async def account(self, name: str) -> str:
        """A service account, made if it is not there, and a token of it for an hour."""
        await self.api.apply(yaml.safe_dump({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": self.name},
        }))  # fmt: skip
        asked = {"spec": {"expirationSeconds": 3600}}
        answer = await self.api.call("POST", f"{self.path}/serviceaccounts/{name}/token", asked)
        token: str = answer["status"]["token"]
        return token

    async def revoke(self, account: str) -> None:
        """Deletes the service account, and so all its tokens; the server remembers them for some seconds more."""
        await self.api.call("DELETE", f"{self.path}/serviceaccounts/{account}")


@asynccontextmanager
async def down(api: KubeApi) -> AsyncIterator[None]:
    """The server is killed, and there again with all its data afterwards."""
    api.server.kill()
    try:
        yield
    finally:
        api.server.start()
        await api.server.up()
