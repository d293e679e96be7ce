"""A Consul agent as far as discovery asks: the catalog and services' health, by blocking queries.

Run it as `python bench/registries/consul_agent.py PORT SERVICES`. As a real one, it wakes the catalog's queries for
any change and a service's for its own. GET /change?i=K makes an instance of the service K critical, or passing again.
"""

import asyncio
import json
import sys
from typing import Any, Final

import uvloop
from aiohttp import web

INSTANCES: Final = (2, 3)
"""Of services with even and odd numbers."""
WAIT_S: Final = 300.0
_NO_ACLS: Final = "ACL support disabled"


class Agent:
    """Everything by the number of a service. An index is the one that its last change had."""

    def __init__(self, services: int) -> None:
        self._critical: set[int] = set()
        self._indexes = dict.fromkeys(range(services), 100)
        self._index = 100
        self._catalog = json.dumps({"consul": [], **{f"service-{i}": ["web", "version=v1"] for i in range(services)}})
        self._changed = {number: asyncio.Event() for number in range(services)}
        self._any = asyncio.Event()

    async def services(self, request: web.Request) -> web.Response:
        await self._wait(request, lambda: self._index, lambda: self._any)
        return self._answer(self._catalog, self._index)

    async def health(self, request: web.Request) -> web.Response:
        number = int(request.match_info["name"].removeprefix("service-"))
        await self._wait(request, lambda: self._indexes[number], lambda: self._changed[number])
        found = [self._instance(number, i) for i in range(INSTANCES[number % 2])]
        return self._answer(json.dumps(found), self._indexes[number])

    async def change(self, request: web.Request) -> web.Response:
        number = int(request.query["i"])
        self._critical ^= {number}
        self._index += 1
        self._indexes[number] = self._index
        for event in (self._changed[number], self._any):
            event.set()
        self._changed[number], self._any = asyncio.Event(), asyncio.Event()
        return web.Response()

    async def _wait(self, request: web.Request, index: Any, event: Any) -> None:
        if (known := int(request.query.get("index", "0"))) and known == index():
            wait = request.query.get("wait", "")
            try:
                async with asyncio.timeout(float(wait.removesuffix("ms")) / 1000 if wait else WAIT_S):
                    await event().wait()
            except TimeoutError:
                pass

    def _answer(self, body: str, index: int) -> web.Response:
        headers = {"X-Consul-Index": str(index), "X-Consul-Default-Acl-Policy": "allow"}
        return web.Response(text=body, headers=headers, content_type="application/json")

    def _instance(self, number: int, i: int) -> dict[str, Any]:
        name, id_ = f"service-{number}", f"service-{number}-{i}"
        node = f"node-{(number * 3 + i) % 200}"
        address = f"10.{number // 250}.{number % 250}.{i + 1}"
        status = "critical" if i == 0 and number in self._critical else "passing"
        tagged = {"lan_ipv4": {"Address": address, "Port": 8080}, "wan_ipv4": {"Address": address, "Port": 8080}}
        where = dict.fromkeys(("lan", "lan_ipv4", "wan", "wan_ipv4"), address)
        return {
            "Node": {
                "ID": "0c8e6c7b-0000-4000-8000-000000000000",
                "Node": node,
                "Address": address,
                "Datacenter": "dc1",
                "TaggedAddresses": where,
                "Meta": {"consul-network-segment": "", "consul-version": "1.21.1", "zone": f"eu-1{'abc'[i]}"},
                "CreateIndex": 12,
                "ModifyIndex": 14,
            },
            "Service": {
                "ID": id_,
                "Service": name,
                "Tags": ["web", "version=v1"],
                "Address": address,
                "TaggedAddresses": tagged,
                "Meta": {"team": f"t{number % 40}", "version": "v1"},
                "Port": 8080,
                "Weights": {"Passing": 1, "Warning": 1},
                "EnableTagOverride": False,
                "Proxy": {"Mode": "", "MeshGateway": {}, "Expose": {}},
                "Connect": {},
                "CreateIndex": 40,
                "ModifyIndex": self._indexes[number],
            },
            "Checks": [
                self._check(node, "serfHealth", "Serf Health Status", "", "passing", "Agent alive and reachable"),
                self._check(node, f"service:{id_}", "HTTP", id_, status, f"HTTP GET http://{address}:8080/: 200 OK"),
            ],
        }

    @staticmethod
    def _check(node: str, id_: str, name: str, service: str, status: str, output: str) -> dict[str, Any]:
        return {
            "Node": node,
            "CheckID": id_,
            "Name": name,
            "Status": status,
            "Notes": "",
            "Output": output,
            "ServiceID": service,
            "ServiceName": service.rpartition("-")[0],
            "ServiceTags": [],
            "Type": "http" if service else "",
            "Interval": "10s" if service else "",
            "Timeout": "2s" if service else "",
            "ExposedPort": 0,
            "Definition": {},
            "CreateIndex": 40,
            "ModifyIndex": 40,
        }


async def leader(_: web.Request) -> web.Response:
    return web.Response(text='"127.0.0.1:8300"', content_type="application/json")


async def no_acls(_: web.Request) -> web.Response:
    return web.Response(status=401, text=_NO_ACLS)


async def serve(port: int, services: int) -> None:
    agent = Agent(services)
    app = web.Application()
    app.router.add_get("/change", agent.change)
    app.router.add_get("/v1/status/leader", leader)
    app.router.add_get("/v1/acl/token/self", no_acls)
    app.router.add_post("/v1/internal/acl/authorize", no_acls)
    app.router.add_get("/v1/catalog/services", agent.services)
    app.router.add_get("/v1/health/service/{name}", agent.health)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
