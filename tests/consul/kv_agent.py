"""As much of a Consul agent as following keys needs, for faults that a real one can't be told to make."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

_WAIT_S: Final = 0.5
"""How long it holds a question at most."""


class KvAgent:
    """Keys with indexes and blocking queries, as Consul has them. `url` once it runs.

    `denied` are keys that nobody may read: left out of lists without a sign, and refused alone, as for who has no
    token. `status` is what it answers to everything about keys, where it is not None. While `answers` is not set it
    hangs: it takes connections and says nothing. `asked` counts the questions about keys.
    """

    def __init__(self) -> None:
        self.url = ""
        self.keys: dict[str, tuple[bytes, int]] = {}
        self.index = 10
        self.denied: set[str] = set()
        self.status: int | None = None
        self.leader = True
        self.answers = asyncio.Event()
        self.answers.set()
        self.asked = 0
        self._changed = asyncio.Event()

    def put(self, key: str, value: str | bytes) -> None:
        self.index += 1
        self.keys[key] = (value if isinstance(value, bytes) else value.encode(), self.index)
        self._wake()

    def delete(self, key: str, *, forgotten: bool = False) -> None:
        """`forgotten`: as when the server has forgotten the deletion, so that the index goes back."""
        del self.keys[key]
        self.index = max((index for _, index in self.keys.values()), default=1) if forgotten else self.index + 1
        self._wake()

    def begin_anew(self, **keys: str) -> None:
        """All is lost, and the index begins again; these are written."""
        self.keys, self.index = {}, 1
        for key, value in keys.items():
            self.put(key, value)
        self._wake()

    def wake(self) -> None:
        """Answer what is held."""
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _kv(self, request: web.Request) -> web.Response:
        self.asked += 1
        await self.answers.wait()
        wanted = request.match_info["key"]
        if self.status is not None:
            return web.Response(status=self.status, text="as the test says")
        if "recurse" not in request.query:
            return self._one(wanted)
        if int(request.query.get("index", 0)) == self.index:
            await self._hold(float(request.query["wait"].removesuffix("ms")) / 1000)
        if self.status is not None:
            return web.Response(status=self.status, text="as the test says")
        await self.answers.wait()
        found = [self._entry(key) for key in sorted(self.keys) if key.startswith(wanted) and key not in self.denied]
        return self._answer(found)

    async def _hold(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(min(wait_s, _WAIT_S)):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _one(self, key: str) -> web.Response:
        if key in self.denied:
            return web.Response(status=403, text="Permission denied")
        return self._answer([self._entry(key)] if key in self.keys else [])

    def _entry(self, key: str) -> dict[str, object]:
        value, index = self.keys[key]
        shown = base64.b64encode(value).decode() if value else None
        return {"LockIndex": 0, "Key": key, "Flags": 0, "Value": shown, "CreateIndex": 1, "ModifyIndex": index}

    def _answer(self, found: list[dict[str, object]]) -> web.Response:
        headers = {"X-Consul-Index": str(self.index)}
        if not found:
            return web.Response(status=404, headers=headers)
        return web.Response(text=json.dumps(found), content_type="application/json", headers=headers)

    async def _leader(self, _: web.Request) -> web.Response:
        await self.answers.wait()
        return web.json_response("127.0.0.1:8300" if self.leader else "")

    async def _token(self, _: web.Request) -> web.Response:
        return web.Response(status=401, text="ACL support disabled")

    @asynccontextmanager
    async def running(self) -> AsyncIterator["KvAgent"]:
        app = web.Application()
        app.router.add_get("/v1/kv/{key:.*}", self._kv)
        app.router.add_get("/v1/status/leader", self._leader)
        app.router.add_get("/v1/acl/token/self", self._token)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", int(self.url.rpartition(":")[2]) if self.url else 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self._wake()
            await runner.cleanup()
