"""Every way to a single server, and what is said where there is none."""

import asyncio
import ssl
from pathlib import Path

import pytest

from ratelimit.counters.check import FailureKind, Rule
from ratelimit.counters.redis.settings import RedisSettings, SettingsError, Topology, redis_settings
from ratelimit.counters.redis.store import RedisStore
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.asking import connected, failure, redis_store, verdict
from tests.ratelimit.counters.relay import Relay
from tests.ratelimit.counters.valkey import HOST, Valkey

RULE = Rule(5, 3600)
TLS = Path(__file__).parents[2] / "e2e/tls"


async def refused(store: RedisStore, said: str) -> str:
    """Waits until the store says why it cannot be asked."""

    async def probe() -> bool:
        return said in store.status.error

    await until(probe, f"the store to say {said!r}")
    return store.status.error


async def test_a_database_of_its_own() -> None:
    async with Valkey() as valkey, redis_store(f"{valkey.url}/3") as store:
        await verdict(store, b"k", RULE)
        assert await valkey.ask("DBSIZE") == 0
        assert b"db3" in str(await valkey.ask("INFO", "keyspace")).encode()
        assert store.status.place.endswith("/3")


async def test_a_unix_socket() -> None:
    async with Valkey() as valkey, redis_store(f"unix://{valkey.path}?db=1") as store:
        assert (await verdict(store, b"k", RULE)).after == 1
        assert store.status.place == f"unix:{valkey.path}"


async def test_a_user_with_few_rights_and_a_password_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    async with Valkey() as valkey:
        rights = (
            "~ratelimit*",
            "resetchannels",
            "-@all",
            "+evalsha",
            "+eval",
            "+script|load",
            "+time",
            "+get",
            "+set",
        )
        await valkey.ask("ACL", "SETUSER", "counting", "on", ">s3cret", *rights)
        settings = RedisSettings(addresses=((HOST, valkey.port),), username="counting", password_file=file)
        async with redis_store(settings) as store:
            assert (await verdict(store, b"ratelimit{}k", RULE)).after == 1
            denied = await failure(store, b"other", RULE)
            assert denied.kind is FailureKind.REFUSED
            assert "permission" in denied.detail.lower() or "NOPERM" in denied.detail


async def test_a_wrong_password_is_said_without_it() -> None:
    async with Valkey("--requirepass", "right") as valkey:
        store = RedisStore(redis_settings(f"redis://:wr0ng@{HOST}:{valkey.port}"))
        await store.start()
        try:
            error = await refused(store, "refuses the login")
            assert "wr0ng" not in error
            assert "wr0ng" not in repr(store.status)
            found = await failure(store, b"k", RULE)
            assert found.kind is FailureKind.DOWN
        finally:
            await store.stop()


async def test_tls_with_a_ca_and_without_trust(tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    async with Valkey() as valkey, Relay(valkey.port, context) as relay:
        url = f"rediss://{HOST}:{relay.port}"
        name = "secure.internal"
        for given in (
            RedisSettings(ca_file=TLS / "ca.pem", server_name=name),
            RedisSettings(insecure=True),
        ):
            async with redis_store(redis_settings(url, given)) as store:
                await verdict(store, b"k", RULE)
        for given, said in (
            (RedisSettings(server_name=name), "its certificate is not trusted"),
            (RedisSettings(ca_file=TLS / "ca.pem", server_name="other.test"), "its certificate is not trusted"),
            (RedisSettings(ca_file=tmp_path / "absent"), "absent"),
        ):
            store = RedisStore(redis_settings(url, given))
            await store.start()
            try:
                await refused(store, said)
            finally:
                await store.stop()


async def test_absent_at_the_start_it_fails_at_once_and_counts_when_it_comes() -> None:
    port = free_port()
    store = RedisStore(redis_settings(f"redis://{HOST}:{port}"))
    changes = []
    store.on_change(lambda: changes.append(store.status.error))
    await store.start()
    try:
        await refused(store, "Connect")
        assert store.ready
        assert (await failure(store, b"k", RULE)).kind is FailureKind.DOWN
        async with Valkey(port=port):
            await connected(store)
            assert (await verdict(store, b"k", RULE)).after == 1
            assert changes[-1] == ""
            await store.stop()
    finally:
        await store.stop()


async def test_a_call_before_the_first_connection_waits_for_it() -> None:
    async with Valkey() as valkey:
        store = RedisStore(redis_settings(valkey.url, RedisSettings(answer_s=10)))
        await store.start()
        assert (await verdict(store, b"k", RULE)).after == 1
        await store.stop()


async def test_a_replica_and_a_node_of_a_cluster_are_named_as_what_they_are() -> None:
    async with Valkey() as valkey, Valkey("--replicaof", HOST, str(valkey.port)) as replica:
        store = RedisStore(redis_settings(replica.url))
        await store.start()
        await refused(store, "it is a replica, and takes no writes")
        await store.stop()
    async with Valkey("--cluster-enabled", "yes", "--cluster-port", str(free_port())) as node:
        await node.ask("CLUSTER", "ADDSLOTSRANGE", 0, 100)
        async with redis_store(node.url) as store:
            found = await failure(store, b"k", RULE)
            assert found.kind is FailureKind.REFUSED


async def test_what_is_no_redis_is_named() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    store = RedisStore(redis_settings(f"redis://{HOST}:{server.sockets[0].getsockname()[1]}"))
    await store.start()
    await refused(store, "it does not speak Redis' protocol")
    await store.stop()
    server.close()
    await server.wait_closed()


def test_urls() -> None:
    assert redis_settings("redis://h").addresses == (("h", 6379),)
    found = redis_settings("rediss://us%40er:p%2Fw@[::1]:7000/2")
    assert (found.addresses, found.username, found.password) == ((("::1", 7000),), "us@er", "p/w")
    assert (found.tls, found.database, found.place) == (True, 2, "[::1]:7000/2")
    sentinel = redis_settings("redis+sentinel://:pw@a,b:1/mymaster/4")
    assert (sentinel.topology, sentinel.addresses) == (Topology.SENTINEL, (("a", 26379), ("b", 1)))
    assert (sentinel.master, sentinel.database, sentinel.place) == ("mymaster", 4, "a:26379,b:1/mymaster/4")
    cluster = redis_settings("rediss+cluster://a:1,b", RedisSettings(ca_file=Path("ca")))
    assert (cluster.topology, cluster.addresses, cluster.ca_file) == (
        Topology.CLUSTER, (("a", 1), ("b", 6379)), Path("ca"),
    )  # fmt: skip
    assert "pw" not in repr(sentinel)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h", "its scheme is one of"),
        ("h:6379", "its scheme is one of"),
        ("redis://a,b", "several servers are a Cluster"),
        ("redis://h/x", "'x' is no number of a database"),
        ("redis://h/1/2", "no database"),
        ("redis://h:port", "no host and port"),
        ("redis://h?db=1", "no options"),
        ("redis+sentinel://h", "asked for a master by name"),
        ("redis+cluster://h/1", "a Cluster has only 0"),
    ],
)
def test_a_url_that_is_none_is_refused_and_its_password_not_shown(url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        redis_settings(url)
    with pytest.raises(SettingsError) as caught:
        redis_settings(url.replace("://", "://u:s3cret@") if "://" in url else f"u:s3cret@{url}")
    assert "s3cret" not in str(caught.value)
