"""A real Consul agent, which is a server too: its catalog, health, KV and ACLs are Consul's own."""

import json
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, Literal
from urllib.parse import quote

from tests.e2e.harness.ports import free_port
from tests.registries.build import CONSUL
from tests.registries.http import call
from tests.registries.server import Server

HOST: Final = "127.0.0.1"
MANAGEMENT: Final = "00000000-0000-0000-0000-00000000aaaa"
"""The token that may do anything, where `acl` is on."""

Status = Literal["passing", "warning", "critical"]

_ACL: Final = {
    "enabled": True,
    "default_policy": "deny",
    "tokens": {"initial_management": MANAGEMENT, "agent": MANAGEMENT},
}


class ConsulAgent:
    """A `-dev` agent, which forgets everything when it ends; `durable` ones keep it in `directory`, indexes too.

    `acl` denies what no token allows. `wan` lets agents of other datacenters join. `config` is added to the agent's.
    """

    def __init__(
        self,
        directory: Path,
        *,
        durable: bool = False,
        acl: bool = False,
        wan: bool = False,
        datacenter: str = "dc1",
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        self.datacenter = datacenter
        self.token = MANAGEMENT if acl else ""
        self.wan_port = free_port() if wan else -1
        ports = {"http": self.port, "serf_lan": free_port(), "server": free_port(), "serf_wan": self.wan_port}
        unused = dict.fromkeys(("dns", "grpc", "grpc_tls", "https"), -1)
        settings: dict[str, Any] = {
            "disable_update_check": True,
            "leave_on_terminate": False,
            "node_name": f"node-{self.port}",
            "datacenter": datacenter,
            "ports": {**ports, **unused},
            "performance": {"raft_multiplier": 1},  # elections of a durable one take 2 s, not 10
            **({"acl": _ACL} if acl else {}),
            **(config or {}),
        }
        file = directory / "agent.json"
        file.write_text(json.dumps(settings))
        kind = ["-server", "-bootstrap-expect", "1", "-data-dir", str(directory / "data")] if durable else ["-dev"]
        addresses = [part for flag in ("-bind", "-client", "-advertise") for part in (flag, HOST)]
        command = [CONSUL.path, "agent", *kind, *addresses, "-config-file", str(file)]
        self.server = Server(command, directory / "agent.out", lambda _: self._answers())

    def start(self) -> None:
        """Starts it and waits until it answers with all that it knows."""
        self.server.start()
        self.server.wait()

    def stop(self) -> None:
        self.server.kill()

    async def restart(self, *, empty: bool = False) -> None:
        """Ends it as a crash does and starts it again; `empty` makes a durable one forget too."""
        self.server.kill()
        if empty:
            rmtree(self.directory / "data", ignore_errors=True)
        self.server.start()
        await self.server.up()

    def _answers(self) -> bool:
        # It has a leader before its own node is in the catalog; and for a moment after a restart, reads that are not
        # `consistent` are answered from a log that is only half read.
        asked = urllib.request.Request(f"{self.url}/v1/catalog/nodes?consistent", headers=self._headers(self.token))
        try:
            with urllib.request.urlopen(asked, timeout=2) as response:
                return any(node["Node"] == f"node-{self.port}" for node in json.load(response))
        except (OSError, ValueError):
            return False

    @staticmethod
    def _headers(token: str) -> dict[str, str]:
        return {"x-consul-token": token} if token else {}

    async def call(self, method: str, path: str, body: object = None, *, token: str | None = None) -> Any:
        """A call with all rights, or with the token given (empty: anonymous). Raises Refused."""
        said = self.token if token is None else token
        return await call(method, self.url + path, body, headers=self._headers(said))

    async def register(
        self,
        service: str,
        address: str = HOST,
        port: int = 80,
        *,
        instance: str = "",
        tags: Iterable[str] = (),
        meta: Mapping[str, str] | None = None,
        status: Status = "passing",
        **more: Any,
    ) -> str:
        """Registers an instance at this agent, with a check that has that status until told otherwise. Gives its id.

        `more` are further fields of the agent's service definition, such as Weights and TaggedAddresses.
        """
        name = instance or f"{service}-{address}:{port}"
        check = {"CheckID": f"service:{name}", "Name": "as the test says", "TTL": "24h", "Status": status}
        body = {
            "Name": service, "ID": name, "Address": address, "Port": port, "Tags": list(tags),
            "Meta": dict(meta or {}), "Check": check, **more,
        }  # fmt: skip
        await self.call("PUT", "/v1/agent/service/register", body)
        await self.check(name, status)  # what is only registered with a status is critical after a restart
        return name

    async def check(self, instance: str, status: Status, output: str = "") -> None:
        """What the instance's check says from now on."""
        await self.call(
            "PUT", f"/v1/agent/check/update/service:{quote(instance)}", {"Status": status, "Output": output}
        )

    async def maintain(self, instance: str, on: bool = True) -> None:
        """Puts an instance into maintenance, or takes it out."""
        await self.call(
            "PUT", f"/v1/agent/service/maintenance/{quote(instance)}?enable={str(on).lower()}&reason=test"
        )

    async def maintain_node(self, on: bool = True) -> None:
        """The same for all instances of the agent's node."""
        await self.call("PUT", f"/v1/agent/maintenance?enable={str(on).lower()}&reason=test")

    async def deregister(self, instance: str) -> None:
        await self.call("PUT", f"/v1/agent/service/deregister/{quote(instance)}")

    async def put(self, key: str, value: str | bytes) -> None:
        """Writes a key of the KV store."""
        await self.call("PUT", f"/v1/kv/{quote(key)}", value)

    async def delete(self, key: str, *, recurse: bool = False) -> None:
        await self.call("DELETE", f"/v1/kv/{quote(key)}{'?recurse' if recurse else ''}")

    async def allow(self, name: str, rules: str) -> str:
        """A new token with the rules given, in Consul's own language: `service_prefix "" { policy = "read" }`."""
        await self.call("PUT", "/v1/acl/policy", {"Name": name, "Rules": rules})
        made = await self.call("PUT", "/v1/acl/token", {"Policies": [{"Name": name}]})
        token: str = made["SecretID"]
        return token

    async def revoke(self, token: str) -> None:
        """Deletes a token."""
        accessor = (await self.call("GET", "/v1/acl/token/self", token=token))["AccessorID"]
        await self.call("DELETE", f"/v1/acl/token/{accessor}")

    async def join(self, other: "ConsulAgent") -> None:
        """Joins another datacenter's agent; both need `wan`."""
        await self.call("PUT", f"/v1/agent/join/{HOST}:{other.wan_port}?wan=1")
