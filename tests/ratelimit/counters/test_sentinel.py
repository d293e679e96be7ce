"""A master that Sentinels name, and the next one when it dies."""

import asyncio
import ssl
from pathlib import Path

import pytest

from ratelimit.counters.check import Rule, Verdict
from ratelimit.counters.redis.connection import UnreachableError
from ratelimit.counters.redis.sentinel import Sentinels
from ratelimit.counters.redis.settings import RedisSettings, redis_settings
from ratelimit.counters.redis.store import RedisStore
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.asking import one, redis_store, verdict
from tests.ratelimit.counters.relay import Relay
from tests.ratelimit.counters.scripted_sentinel import HANGS, ScriptedSentinel, master
from tests.ratelimit.counters.valkey import HOST, Valkey

RULE = Rule(1000, 86_400)
TLS = Path(__file__).parents[2] / "e2e/tls"
NAME = "secure.internal"


def sentinels(*ports: int, given: RedisSettings | None = None, scheme: str = "redis") -> Sentinels:
    hosts = ",".join(f"{HOST}:{port}" for port in ports)
    return Sentinels(redis_settings(f"{scheme}+sentinel://{hosts}/counters", given))


def tls_of_a_server() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    return context


async def test_after_a_failover_the_new_master_goes_on_with_what_was_replicated() -> None:
    async with (
        Valkey() as master,
        Valkey("--replicaof", HOST, str(master.port)) as replica,
        Valkey(sentinel_of=master.port) as sentinel,
        redis_store(f"redis+sentinel://{HOST}:{free_port()},{HOST}:{sentinel.port}/counters") as store,
    ):
        await verdict(store, b"k", RULE, 5)

        async def replicated() -> bool:
            info = await sentinel.ask("SENTINEL", "REPLICAS", "counters")
            return bool(info) and await replica.ask("GET", "k") is not None

        await until(replicated, "the replica to be known, and to have the counter", within=30)
        await master.kill()

        async def counts_again() -> bool:
            found = await one(store, b"k", RULE)
            return isinstance(found, Verdict) and found.before >= 5

        await until(counts_again, "the new master to count", within=40, every=0.1)


async def test_without_a_sentinel_it_says_so() -> None:
    store = RedisStore(redis_settings(f"redis+sentinel://{HOST}:{free_port()}/counters", RedisSettings(connect_s=1)))
    await store.start()

    async def said() -> bool:
        return "no Sentinel of" in store.status.error

    await until(said, "the store to say that no Sentinel answers")
    await asyncio.wait_for(store.stop(), 10)


async def test_with_tls_sentinels_and_master_are_checked_alike() -> None:
    context = tls_of_a_server()
    given = RedisSettings(ca_file=TLS / "ca.pem", server_name=NAME)
    async with (
        Valkey() as valkey,
        Relay(valkey.port, context) as relay,
        ScriptedSentinel(master("counters", relay.port), context) as sentinel,
        redis_store(redis_settings(f"rediss+sentinel://{HOST}:{sentinel.port}/counters", given)) as store,
    ):
        assert (await verdict(store, b"k", RULE)).after == 1


async def test_authorities_of_the_system_are_not_trusted_beside_those_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))
    async with ScriptedSentinel(master("counters", 1), tls_of_a_server()) as sentinel:
        by_the_system = RedisSettings(server_name=NAME)
        assert await sentinels(sentinel.port, given=by_the_system, scheme="rediss").master() == (HOST, 1)
        by_a_file = RedisSettings(ca_file=TLS / "rotated.pem", server_name=NAME)
        with pytest.raises(UnreachableError, match="its certificate is not trusted"):
            await sentinels(sentinel.port, given=by_a_file, scheme="rediss").master()


async def test_nobody_is_asked_for_the_password_of_a_key() -> None:
    """That would stop the whole service, at a terminal."""
    key = TLS / "server-encrypted.key"
    given = RedisSettings(ca_file=TLS / "ca.pem", certificate_file=TLS / "server.pem", key_file=key, server_name=NAME)
    async with ScriptedSentinel(master("counters", 1), tls_of_a_server()) as sentinel:
        with pytest.raises(UnreachableError, match="TLS for the store of counters") as caught:
            await sentinels(sentinel.port, given=given, scheme="rediss").master()
    assert str(key) in str(caught.value)


@pytest.mark.parametrize(
    ("says", "said"),
    [
        (master("another", 1), "knows no master 'counters'"),
        (master("counters", 1, "master,s_down,o_down"), "is down"),
        (b"-NOPERM no permissions\r\n", "NOPERM"),
        (b"*1\r\n$4\r\nname\r\n", "does not answer as a Sentinel does"),
        (b"*1\r\n*2\r\n$4\r\nname\r\n:1\r\n", "does not answer as a Sentinel does"),
        (b"$2\r\nno\r\n", "does not answer as a Sentinel does"),
        (b":1\r\n", "does not answer as a Sentinel does"),
        (b"HTTP/1.1 400\r\n", "does not speak Redis' protocol"),
        (HANGS, "names no master within 0.2 s"),
    ],
)
async def test_what_each_says_is_told_and_the_next_is_asked(says: bytes, said: str) -> None:
    hasty = RedisSettings(connect_s=0.2) if says == HANGS else None
    async with ScriptedSentinel(says) as first, ScriptedSentinel(master("counters", 7)) as second:
        with pytest.raises(UnreachableError, match=said) as caught:
            await sentinels(first.port, given=hasty).master()
        assert f"{HOST}:{first.port}" in str(caught.value)
        both = sentinels(first.port, second.port, given=hasty and RedisSettings(connect_s=1))
        asked = first.asked
        assert [await both.master() for _ in range(3)] == [(HOST, 7)] * 3
        assert (first.asked, second.asked) == (asked + 1, 3)


async def test_the_same_trouble_is_told_once() -> None:
    async with ScriptedSentinel(master("another", 1)) as sentinel:
        store = RedisStore(redis_settings(f"redis+sentinel://{HOST}:{sentinel.port},{HOST}:{free_port()}/counters"))
        told: list[str] = []
        store.on_change(lambda: told.append(store.status.error))
        await store.start()

        async def tried() -> bool:
            return sentinel.asked >= 4

        await until(tried, "four attempts")
        assert len(told) == 1
        await store.stop()
