"""Rules of a route file as a gRPC client follows them by itself."""

import contextlib
from collections.abc import AsyncIterator
from itertools import count

import pytest

from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until
from tests.grpc.harness import Backend, Caller, Told

pytestmark = pytest.mark.asyncio(loop_scope="session")

NUMBERS = count()
SUBSETS = {"plain": {"v": "1"}, "other": {"v": "2"}}


@contextlib.asynccontextmanager
async def serving(
    shared: Site, caller: Caller, name: str, *rules: dict[str, object], **more: object
) -> AsyncIterator[None]:
    """A service of these rules and two backends, `plain` for the calls that none of them takes. It begins when the
    client has all of it."""
    refused = only("refused", to="plain", fault={"abort": 401, "percent": "100%"})
    rules = (refused, only("taken", to="plain"), *rules, {"name": "rest", "to": "plain"})
    shared.route(name, {"subsets": SUBSETS, "rules": list(rules), **more})
    async with Backend("plain") as plain, Backend("other") as other:
        shared.service(name, plain.endpoint(v="1"), other.endpoint(v="2"))

        async def has_it() -> bool:
            rules = statuses(await caller.call(name, metadata={"refused": "1"})) == ["UNAUTHENTICATED"]
            return rules and (await caller.call(name, metadata={"taken": "1"})).answers == {"plain": 1}

        await until(has_it, f"the rules of {name}")
        yield


@pytest.mark.parametrize(
    ("match", "path", "metadata", "taken"),
    [
        ({"path": "/shop.Cart/Add"}, "/shop.Cart/Add", {}, True),
        ({"path": "/shop.Cart/Add"}, "/shop.Cart/AddAll", {}, False),
        ({"prefix": "/shop.Cart"}, "/shop.Cart/Add", {}, True),
        ({"prefix": "/shop.Cart"}, "/shop.Carts/Add", {}, False),
        ({"prefix": "/shop.Cart/Add"}, "/shop.Cart/Add", {}, True),
        ({"prefix": "/shop.Cart/Add"}, "/shop.Cart/AddAll", {}, False),
        ({"prefix": "/shop.Cart/Add/x"}, "/shop.Cart/Add", {}, False),
        ({"regex": r"/shop\.[^/]+/Get.*"}, "/shop.Order/GetAll", {}, True),
        ({"regex": r"/shop\.[^/]+/Get.*"}, "/shop.Order/Put", {}, False),
        ({"methods": ["POST", "PUT"]}, "/shop.Cart/Add", {}, True),
        ({"methods": ["GET"]}, "/shop.Cart/Add", {}, False),
        ({"query": {"q": {"present": True}}}, "/shop.Cart/Add", {}, False),
        ({"query": {"q": {"absent": True}}}, "/shop.Cart/Add", {}, True),
        ({"headers": {"x-user": {"prefix": "test-"}}}, "/shop.Cart/Add", {"x-user": "test-1"}, True),
        ({"headers": {"x-user": {"prefix": "test-"}}}, "/shop.Cart/Add", {"x-user": "jo"}, False),
        ({"headers": {"x-age": {"range": [18, 65]}}}, "/shop.Cart/Add", {"x-age": "64"}, True),
        ({"headers": {"x-age": {"range": [18, 65]}}}, "/shop.Cart/Add", {"x-age": "65"}, False),
        ({"headers": {"x-user": {"absent": True}}}, "/shop.Cart/Add", {}, True),
        ({"headers": {"x-user": {"absent": True}}}, "/shop.Cart/Add", {"x-user": "jo"}, False),
        ({"headers": {"x-user": {"regex": "j.*"}}}, "/shop.Cart/Add", {"x-user": "jo"}, True),
        ({"cookies": {"seen": "1"}}, "/shop.Cart/Add", {"cookie": "a=b; seen=1"}, True),
        ({"cookies": {"seen": "1"}}, "/shop.Cart/Add", {"cookie": "seen=10"}, False),
        ({"cookies": {"seen": {"absent": True}}}, "/shop.Cart/Add", {}, True),
        ({"cookies": {"seen": {"absent": True}}}, "/shop.Cart/Add", {"cookie": "a=b"}, True),
        ({"cookies": {"seen": {"absent": True}}}, "/shop.Cart/Add", {"cookie": "seen=1"}, False),
    ],
    ids=str,
)
async def test_matches(
    shared: Site, caller: Caller, match: dict[str, object], path: str, metadata: dict[str, str], *, taken: bool
) -> None:
    name = f"matches-{next(NUMBERS)}"
    async with serving(shared, caller, name, {"name": "tested", "match": [match], "to": "other"}):
        told = await caller.call(name, path=path, metadata=metadata)
        assert told.backends == {"other" if taken else "plain"}


def only(header: str, **rule: object) -> dict[str, object]:
    """A rule for the calls that have this header."""
    return {"name": header, "match": [{"headers": {header: "1"}}], **rule}


def statuses(told: Told) -> list[str]:
    return [error.partition(":")[0] for error in told.errors]


async def test_a_call_is_tried_again_where_http_would_be(shared: Site, caller: Caller) -> None:
    again = only("again", to="plain", retry={"attempts": 2, "on": ["5xx"]})
    async with serving(shared, caller, "retries", again):
        assert (await caller.call("retries", metadata={"again": "1", "fail-first": "2"})).backends == {"plain"}
        once = await caller.call("retries", metadata={"fail-first": "3"})
        assert once.errors == {"UNAVAILABLE: as asked": 1}


async def test_a_timeout_is_the_whole_calls(shared: Site, caller: Caller) -> None:
    async with serving(shared, caller, "timeouts", only("short", to="plain", timeout="200ms")):
        late = await caller.call("timeouts", metadata={"short": "1", "delay": "5"})
        assert statuses(late) == ["DEADLINE_EXCEEDED"]
        assert late.seconds < 4
        assert (await caller.call("timeouts", metadata={"delay": "0.5"})).backends == {"plain"}


async def test_faults_are_done_by_the_client(shared: Site, caller: Caller) -> None:
    abort = only("abort", to="plain", fault={"abort": 503, "percent": "100%"})
    slow = only("slow", to="plain", fault={"delay": "300ms", "percent": "100%"})
    async with serving(shared, caller, "faults", abort, slow):
        assert statuses(await caller.call("faults", metadata={"abort": "1"})) == ["UNAVAILABLE"]
        assert (await caller.call("faults", metadata={"slow": "1"})).seconds >= 0.3
        assert (await caller.call("faults")).backends == {"plain"}


async def test_more_calls_at_a_time_than_the_limit_fail_at_once(shared: Site, caller: Caller) -> None:
    async with serving(shared, caller, "limits", cluster={"circuit_breaker": {"requests": 1}}):
        told = await caller.call("limits", at_once=2, metadata={"delay": "1"})
        assert told.answers == {"plain": 1}
        assert statuses(told) == ["UNAVAILABLE"]


async def test_what_only_a_proxy_can_do_is_in_the_warnings(shared: Site, caller: Caller) -> None:
    rules = (
        only("answered", respond={"status": 403}),
        only("edited", to="plain", mirror=[{"to": "other"}], headers={"request": {"set": {"a": "b"}}}),
    )
    async with serving(shared, caller, "proxied", *rules, cluster={"health_check": {}}):
        assert statuses(await caller.call("proxied", metadata={"answered": "1"})) == ["UNAVAILABLE"]
        warnings = {each.reason for each in (await shared.status()).warnings if each.service == "proxied.default"}
        assert warnings == {
            "rule answered: gRPC calls without a proxy fail with UNAVAILABLE instead",
            "rule edited: gRPC clients without a proxy do without its headers, mirror",
            "gRPC clients without a proxy do without its cluster's health_check",
        }


async def test_a_file_that_never_was_good_refuses_every_call(shared: Site, caller: Caller) -> None:
    async with Backend("only") as backend:
        shared.route("broken", "version: 1\nservice: broken\nrules: 7\n")

        async def is_told() -> bool:
            return "broken.yaml" in (await shared.get("/status"))[1]

        await until(is_told, "the file to be read: the service's own is followed apart from it")
        shared.service("broken", backend.endpoint())
        assert statuses(await caller.call("broken")) == ["UNAVAILABLE"]
        assert not backend.calls
