"""Where requests go beyond a plain split: sticky callers, copies, upgrades, other protocols."""

import asyncio
import ssl
from collections import Counter
from pathlib import Path

import grpc
import grpc.aio
import pytest

from tests.e2e.harness.grpc_upstream import GrpcUpstream, call
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.tour import Tour
from tests.e2e.harness.upstream import TcpUpstream, Upstream
from tests.e2e.harness.wait import until

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="session")]

TLS = Path(__file__).parent / "tls"
"""A CA and a certificate of secure.internal that it signed; the CA's own key was thrown away."""

VERSIONS = {"stable": {"version": "v41"}, "canary": {"version": "v42"}}
ALL = {"all": {"app": "all"}}


async def test_sticky_callers_stay_on_their_side_of_a_split(tour: Tour) -> None:
    async with Upstream("stable") as stable, Upstream("canary") as canary:
        split = {"stable": "50%", "canary": "50%"}
        rules = [
            {"match": [{"path": "/header"}], "to": split, "sticky": {"header": "x-user"}},
            {"match": [{"path": "/query"}], "to": split, "sticky": {"query": "user"}},
            {"match": [{"path": "/cookie"}], "to": split, "sticky": {"cookie": {"name": "side", "ttl": "session"}}},
            {"to": split},
        ]
        endpoints = (stable.endpoint(version="v41"), canary.endpoint(version="v42"))
        await tour.serve("sticky", *endpoints, routes={"subsets": VERSIONS, "rules": rules})

        by_user = {}
        for user in range(40):
            sides = {(await tour.get("sticky", "/header", x_user=f"user-{user}")).subset for _ in range(4)}
            assert len(sides) == 1, user
            by_user[user] = sides.pop()
        assert 8 <= list(by_user.values()).count("canary") <= 32
        for user in range(10):
            assert len({(await tour.get("sticky", f"/query?user={user}")).subset for _ in range(4)}) == 1

        first = await tour.get("sticky", "/cookie")
        cookie = first.headers["set-cookie"].partition(";")[0]
        assert cookie.startswith("side=")
        again = {(await tour.get("sticky", "/cookie", cookie=cookie)).subset for _ in range(8)}
        assert again == {first.subset}


async def test_a_mirror_gets_copies_and_its_answers_are_dropped(tour: Tour) -> None:
    async with Upstream("stable") as stable, Upstream("canary") as canary:
        rules = [
            {"match": [{"path": "/none"}], "to": "stable", "mirror": [{"to": "canary", "percent": "0%"}]},
            {"to": "stable", "mirror": [{"to": "canary"}]},
        ]
        endpoints = (stable.endpoint(version="v41"), canary.endpoint(version="v42"))
        await tour.serve("mirrored", *endpoints, routes={"subsets": VERSIONS, "rules": rules})
        replies = [await tour.get("mirrored", "/none") for _ in range(10)]
        replies += [await tour.get("mirrored", "/?status=201") for _ in range(10)]
        assert Counter((reply.subset, reply.status) for reply in replies) == {
            ("stable", 200): 10,
            ("stable", 201): 10,
        }

        async def copied() -> bool:
            return canary.requests == 10

        await until(copied, "ten copies")
        assert stable.requests == 20


async def test_another_service_as_destination(tour: Tour) -> None:
    async with Upstream("old") as old, Upstream("new") as new:
        tour.site.service("target", new.endpoint(), namespace="elsewhere")
        rules = [{"to": {"target.elsewhere": "100%", "all": "0%"}}]
        await tour.serve("moved", old.endpoint(app="all"), routes={"subsets": ALL, "rules": rules})
        assert {(await tour.get("moved")).subset for _ in range(10)} == {"new"}


async def test_websockets_where_a_rule_allows_them(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        rules = [{"match": [{"path": "/chat"}], "to": "all", "websocket": True}, {"to": "all"}]
        await tour.serve("sockets", upstream.endpoint(app="all"), routes={"subsets": ALL, "rules": rules})
        url = f"http://{tour.site.egress}/chat"
        async with tour.http.ws_connect(url, headers={"host": "sockets"}) as socket:
            for text in ("one", "two"):
                await socket.send_str(text)
                assert await socket.receive_str(timeout=5) == f"echo {text}"
        upgrade = {"connection": "upgrade", "upgrade": "websocket"}
        refused = await tour.get("sockets", "/", sec_websocket_version="13", sec_websocket_key="eA==", **upgrade)
        assert refused.status == 403


async def test_grpc(tour: Tour) -> None:
    async with GrpcUpstream("stable") as stable, GrpcUpstream("canary") as canary:
        rules = [
            {"match": [{"headers": {"x-tester": "1"}}], "to": "canary"},
            {"match": [{"path": "/test.Echo/Say"}], "to": {"stable": "50%", "canary": "50%"}},
            {"to": "stable"},
        ]
        endpoints = (stable.endpoint(version="v41"), canary.endpoint(version="v42"))
        routes = {"subsets": VERSIONS, "rules": rules}
        await tour.serve("greeter", *endpoints, routes=routes, protocol="grpc")
        answers = {await call(tour.site.egress, "greeter", b"hello") for _ in range(20)}
        assert answers == {b"stable: hello", b"canary: hello"}

        tour.site.service("greeter", protocol="grpc")

        async def unavailable() -> bool:
            try:
                await call(tour.site.egress, "greeter", b"hello")
            except grpc.aio.AioRpcError as error:
                return error.code() is grpc.StatusCode.UNAVAILABLE
            return False

        await until(unavailable, "a service scaled to zero to be UNAVAILABLE")


async def test_tcp_service_at_its_own_address(tour: Tour) -> None:
    port = free_port()
    async with TcpUpstream("one") as one, TcpUpstream("two") as two:

        def endpoint(upstream: TcpUpstream) -> dict[str, object]:
            return {"address": upstream.address}

        tour.site.service("database", endpoint(one), protocol="tcp", port=5432)
        tour.site.route("database", {"listen": f"127.0.0.1:{port}"})

        async def greeting() -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                name = (await reader.readline()).decode().strip()
                writer.write(b"ping")
                assert not name or await reader.readexactly(4) == b"ping"
                return name
            finally:
                writer.close()

        async def served_by_one() -> bool:
            return await greeting() == "one"

        async def served_by_two() -> bool:
            return await greeting() == "two"

        await until(served_by_one, "the TCP listener")
        tour.site.service("database", endpoint(two), protocol="tcp", port=5432)
        await until(served_by_two, "the other endpoint")
        assert (await tour.get("database")).status == 404


async def test_tls_to_the_service(tour: Tour) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    async with Upstream("all", tls=context) as upstream:

        def routes(**tls: object) -> dict[str, object]:
            return {"subsets": ALL, "rules": [{"to": "all"}], "cluster": {"tls": tls}}

        trusted = {"ca": str(TLS / "ca.pem")}
        endpoint = upstream.endpoint(app="all")
        await tour.serve("secure", endpoint, routes=routes(**trusted, sni="secure.internal"))
        assert (await tour.get("secure")).status == 200
        await tour.serve("impostor", endpoint, routes=routes(**trusted, sni="other.internal"))
        assert (await tour.get("impostor")).status == 503
        await tour.serve("untrusted", endpoint, routes=routes(sni="secure.internal"))
        assert (await tour.get("untrusted")).status == 503
        await tour.serve("unverified", endpoint, routes=routes(verify=False))
        assert (await tour.get("unverified")).status == 200


async def test_endpoints_by_name_are_resolved_by_envoy(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        by_name = {**upstream.endpoint(app="all"), "address": "localhost"}
        await tour.serve("by-name", by_name, routes={"subsets": ALL, "rules": [{"to": "all"}]})

        async def answers() -> bool:
            return (await tour.get("by-name")).status == 200

        await until(answers, "localhost to be resolved")


async def test_ipv6_endpoints(tour: Tour) -> None:
    async with Upstream("all", host="::1") as upstream:
        await tour.serve("six", upstream.endpoint(app="all"), routes={"subsets": ALL, "rules": [{"to": "all"}]})
        assert (await tour.get("six")).subset == "all"


async def test_weights_of_endpoints(tour: Tour) -> None:
    async with Upstream("light") as light, Upstream("heavy") as heavy:
        endpoints = ({**light.endpoint(app="all"), "weight": 1}, {**heavy.endpoint(app="all"), "weight": 9})
        routes = {"subsets": ALL, "rules": [{"to": "all"}], "cluster": {"lb": "round_robin"}}
        await tour.serve("weighted", *endpoints, routes=routes)
        counts = Counter([(await tour.get("weighted")).subset for _ in range(200)])
        assert 5 <= counts["light"] <= 45, counts
