"""As much of Consul as discovery asks for, in memory: catalog, health, ACLs, indexes, and faults at will.

What it does that a real agent can be told to do, `test_agents.py` compares with one.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec

Status = Literal["passing", "warning", "critical"]
NODE: Final = "node-1"
ADMIN: Final = "admin"
_OWN_PORT: Final = 8300


@dataclass
class Registered:
    """An instance, as it was registered."""

    service: str
    id: str
    address: str
    port: int
    tags: tuple[str, ...]
    meta: dict[str, str]
    weights: dict[str, int]
    node: str
    status: Status = "passing"
    maintained: bool = False
    changed_at: int = 0


@dataclass
class Rules:
    """What a token may read; an empty prefix is everything, None is nothing."""

    services: str | None = None
    nodes: str | None = None

    def service(self, name: str) -> bool:
        return self.services is not None and name.startswith(self.services)

    def node(self, name: str) -> bool:
        return self.nodes is not None and name.startswith(self.nodes)


@dataclass
class Reply:
    """An HTTP answer."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class ModelConsul:
    """One agent that is a server too. Its methods are those of the tests' real agent, as far as both can do it.

    `fault` is the answer to everything with `fault_about` in its path; `hung` never answers; more than `cap`
    questions at once are refused. `unlisted` services are not in the catalog. `asked` has the paths of all.
    """

    def __init__(self, *, acl: bool = False, seed: int = 0) -> None:
        self.acl = acl
        self.tokens: dict[str, Rules] = {ADMIN: Rules("", "")} if acl else {}
        self.anonymous = Rules()
        self.token = ADMIN if acl else ""
        self.index = 10
        self.cap = 1000
        self._open = 0
        self.instances: dict[tuple[str, str], Registered] = {}
        self.fault: Reply | None = None
        self.fault_about: str = ""
        self.hung = False
        self.streams = True
        self.unlisted: frozenset[str] = frozenset()
        self.asked: list[str] = []
        self._life = 0
        self._gone_at: dict[str, int] = {}
        self._random = random.Random(seed)
        self._changed = asyncio.Event()
        self._register("consul", NODE, "127.0.0.1", _OWN_PORT)

    async def register(
        self,
        service: str,
        address: str = "127.0.0.1",
        port: int = 80,
        *,
        instance: str = "",
        tags: Iterable[str] = (),
        meta: Mapping[str, str] | None = None,
        status: Status = "passing",
        node: str = NODE,
        Weights: Mapping[str, int] | None = None,  # noqa: N803 (Consul's own name, as the real agent takes it)
    ) -> str:
        id_ = instance or f"{service}-{address}:{port}"
        self._register(service, id_, address, port, tuple(tags), dict(meta or {}), dict(Weights or {}), node, status)
        return id_

    async def check(self, instance: str, status: Status) -> None:
        for one in self._called(instance):
            one.status = status
            self._touch(one)

    async def maintain(self, instance: str, on: bool = True) -> None:
        for one in self._called(instance):
            one.maintained = on
            self._touch(one)

    async def deregister(self, instance: str) -> None:
        for one in self._called(instance):
            del self.instances[one.node, one.id]
            self.index += 1
            self._gone_at[one.service] = self.index
            for other in self.instances.values():
                if other.service == one.service:
                    other.changed_at = self.index
        self._wake()

    async def allow(self, name: str, rules: str) -> str:
        """Rules in Consul's language, of which only prefixes of services and nodes are understood."""
        self.tokens[name] = _rules(rules)
        self._wake(quietly=True)
        return name

    async def revoke(self, token: str) -> None:
        del self.tokens[token]
        self._wake()

    def forget(self, *, index: int = 10) -> None:
        """As a `-dev` agent that is started again: nothing is known, the index begins anew, and what waits fails."""
        self.instances.clear()
        self._gone_at.clear()
        self.index = index
        self._life += 1
        self._register("consul", NODE, "127.0.0.1", _OWN_PORT)
        self.cut()

    def half_read(self, applied: float) -> Callable[[], None]:
        """As a durable agent for a moment after its start: it has read that part of its log, answers from it, and its
        index is as low. What is returned reads the rest."""
        whole, index = dict(self.instances), self.index
        self.index = 10 + int((index - 10) * applied)
        self.instances = {key: one for key, one in whole.items() if one.changed_at <= self.index}
        self._life += 1
        self.cut()

        def rest() -> None:
            self.instances, self.index = whole, index
            self.cut()

        return rest

    def churn(self) -> None:
        """Something else changed that has nothing to do with services' instances."""
        self.index += 1
        self._wake()

    def cut(self) -> None:
        """Let whatever waits look again: at a fault, say."""
        self._wake()

    # What the HTTP side asks.

    async def ask(
        self, path: str, params: Mapping[str, str], token: str, body: bytes = b"", *, wait_s: float = 300.0
    ) -> Reply:
        self.asked.append(path)
        if self._open >= self.cap:
            return Reply(429, b"Your IP is issuing too many concurrent connections")
        self._open += 1
        try:
            return await self._ask(path, params, token, body, wait_s)
        finally:
            self._open -= 1

    async def _ask(self, path: str, params: Mapping[str, str], token: str, body: bytes, wait_s: float) -> Reply:
        index, held_s = int(params.get("index", "0")), wait_s + self._random.random() * wait_s / 16
        loop = asyncio.get_running_loop()
        deadline = loop.time() + held_s
        expired = False
        life = self._life
        while True:
            if life != self._life:
                return Reply(500, b"rpc error making call: EOF")
            changed = self._changed
            if self.hung:
                await changed.wait()
                continue
            if self.fault is not None and self.fault_about in path:
                return self.fault
            streamed = index > 0 and self.streams and path.startswith("/v1/health/")
            if (reply := self._now(path, token, body, streamed=streamed)).status != 200:
                return reply
            known = int(reply.headers.get("x-consul-index", "0"))
            if index == 0 or not known or known > index or expired:
                return reply
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                expired = True

    def _now(self, path: str, token: str, body: bytes, *, streamed: bool) -> Reply:
        if self.acl and token and token not in self.tokens and path != "/v1/status/leader":
            return Reply(403, b"ACL not found")
        rules = (self.tokens.get(token, Rules()) if token else self.anonymous) if self.acl else Rules("", "")
        acl_header = {"x-consul-default-acl-policy": "deny" if self.acl else "allow"}
        match path.split("/")[2:]:
            case ["status", "leader"]:
                return Reply(200, b'"127.0.0.1:8300"', acl_header)
            case ["acl", "token", "self"]:
                return self._token_self(token, acl_header)
            case ["internal", "acl", "authorize"]:
                return self._authorize(rules, body, acl_header)
            case ["catalog", "services"]:
                found, hidden = self._catalog(rules)
                return _json(found, self.index, acl_header, filtered=hidden and bool(token))
            case ["health", "service", name]:
                seen, hidden = self._health(name, rules)
                # A query that waited on a stream has no sign of what the token may no longer read.
                return _json(
                    seen, self._index_of(name, streamed), acl_header, filtered=hidden and bool(token) and not streamed
                )
        return Reply(404, b"")

    def _token_self(self, token: str, headers: dict[str, str]) -> Reply:
        if not self.acl:
            return Reply(401, b"ACL support disabled", headers)
        return Reply(200, b"{}", headers) if token else Reply(403, b"ACL not found", headers)

    def _authorize(self, rules: Rules, body: bytes, headers: dict[str, str]) -> Reply:
        if not self.acl:
            return Reply(401, b"ACL support disabled", headers)
        answers = [
            {**one, "Allow": getattr(rules, one["Resource"])(one["Segment"])} for one in msgspec.json.decode(body)
        ]
        return Reply(200, msgspec.json.encode(answers), headers)

    def _catalog(self, rules: Rules) -> tuple[dict[str, list[str]], bool]:
        found: dict[str, set[str]] = {}
        hidden = False
        for one in self.instances.values():
            if one.service in self.unlisted:
                continue
            if rules.service(one.service):
                found.setdefault(one.service, set()).update(one.tags)
            else:
                hidden = True
        return {name: sorted(found[name]) for name in sorted(found)}, hidden

    def _health(self, name: str, rules: Rules) -> tuple[list[dict[str, Any]], bool]:
        there = [one for one in self.instances.values() if one.service == name]
        seen = [one for one in there if rules.service(name) and rules.node(one.node)]
        return [_entry(one) for one in seen], len(seen) < len(there)

    def _index_of(self, service: str, streamed: bool) -> int:
        changes = [one.changed_at for one in self.instances.values() if one.service == service]
        if changes:
            return max(changes)
        # A stream knows when the service's last event was; servers give the newest index of all, and wake for it.
        return self._gone_at.get(service, self.index) if streamed else self.index

    def _register(
        self,
        service: str,
        id_: str,
        address: str,
        port: int,
        tags: tuple[str, ...] = (),
        meta: dict[str, str] | None = None,
        weights: dict[str, int] | None = None,
        node: str = NODE,
        status: Status = "passing",
    ) -> None:
        weights = weights or {"Passing": 1, "Warning": 1}
        one = Registered(service, id_, address, port, tags, meta or {}, weights, node, status)
        self.instances[node, id_] = one
        self._touch(one)

    def _called(self, instance: str) -> list[Registered]:
        return [one for one in self.instances.values() if one.id == instance]

    def _touch(self, one: Registered) -> None:
        self.index += 1
        one.changed_at = self.index
        self._wake()

    def _wake(self, *, quietly: bool = False) -> None:
        if not quietly:
            self._changed.set()
            self._changed = asyncio.Event()


def _entry(one: Registered) -> dict[str, Any]:
    checks = [
        {"CheckID": "serfHealth", "Name": "Serf Health Status", "Status": "passing"},
        {"CheckID": f"service:{one.id}", "Name": "as the test says", "Status": one.status},
    ]
    if one.maintained:
        checks.append({"CheckID": f"_service_maintenance:{one.id}", "Name": "Maintenance Mode", "Status": "critical"})
    return {
        "Node": {"Node": one.node, "Address": "127.0.0.1", "Datacenter": "dc1", "Meta": {"consul-version": "1.14"}},
        "Service": {
            "ID": one.id, "Service": one.service, "Tags": list(one.tags), "Meta": one.meta,
            "Address": one.address, "Port": one.port, "Weights": one.weights, "ModifyIndex": one.changed_at,
        },
        "Checks": checks,
    }  # fmt: skip


def _json(value: object, index: int, headers: dict[str, str], *, filtered: bool) -> Reply:
    more = {"x-consul-results-filtered-by-acls": "true"} if filtered else {}
    return Reply(200, msgspec.json.encode(value), {"x-consul-index": str(index), **headers, **more})


def _rules(text: str) -> Rules:
    words = text.replace("{", " ").replace("}", " ").replace("=", " ").split()
    rules = Rules()
    for kind, prefix in pairwise(words):
        if kind == "service_prefix":
            rules.services = prefix.strip('"')
        elif kind == "node_prefix":
            rules.nodes = prefix.strip('"')
    return rules
