"""One running installation for many features: each test adds services and routes of its own, live."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import aiohttp

from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until

READY_PATH = "/is-ready"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer through Envoy. `headers` in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def subset(self) -> str:
        return self.headers.get("x-subset", "")

    @property
    def echo(self) -> dict[str, Any]:
        """What the upstream was asked: path, method, headers (in lower case)."""
        asked: dict[str, Any] = json.loads(self.text)
        return {**asked, "headers": {name.lower(): value for name, value in asked["headers"].items()}}


class Tour:
    """`site` and `envoy` run already."""

    def __init__(self, site: Site, envoy: Envoy, http: aiohttp.ClientSession) -> None:
        self.site = site
        self.envoy = envoy
        self.http = http
        self._revisions = count(1)

    async def serve(self, name: str, *endpoints: dict[str, Any], routes: dict[str, Any], **service: Any) -> None:
        """Writes the service and its route file, and waits until Envoy has both.

        An HTTP service gets one more rule in front, which says which revision Envoy has.
        """
        self.site.service(name, *endpoints, **service)
        revision = str(next(self._revisions))
        ready = {
            "name": "is-ready",
            "match": [{"path": READY_PATH}],
            "respond": {"status": 200, "body": revision},
        }
        self.site.route(name, {**routes, "rules": [ready, *routes["rules"]]})

        async def in_force() -> bool:
            return (await self.get(name, READY_PATH)).text == revision

        try:
            await until(in_force, f"the routes of {name}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.site.control.tail()}") from None

    async def get(self, host: str, path: str = "/", *, method: str = "GET", **headers: str) -> Reply:
        """A request through Envoy. `x_tester="1"` is the header `x-tester`. Redirects are not followed."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"http://{self.site.egress}{path}"
        async with self.http.request(method, url, headers={**sent, "host": host}, allow_redirects=False) as response:
            fields = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status, fields, await response.text())
