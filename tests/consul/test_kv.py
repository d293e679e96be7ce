"""Keys of Consul as a folder, against a double: every fault, and what it costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import pytest

from discovery.consul import gate
from discovery.consul import keys as rules
from discovery.consul.kv import KvFolder, is_one_level, is_operator_file
from discovery.consul.settings import ConsulSettings
from operator_files.folder import Look
from tests.consul.kv_agent import KvAgent
from tests.consul.looks import Looks, following


@asynccontextmanager
async def agent(**files: str) -> AsyncIterator[KvAgent]:
    double = KvAgent()
    for key, text in files.items():
        double.put(f"routes/{key}", text)
    async with double.running():
        yield double


def followed(url: str, *known: str) -> AbstractAsyncContextManager[Looks]:
    return following(KvFolder(ConsulSettings(url), "routes"), *known)


async def test_keys_are_files_by_their_names_below_the_prefix() -> None:
    async with agent(a="one", nested__b="two") as there:
        there.put("routes/team/b.yaml", "two")
        there.put("routes-old/c", "not ours")
        there.put("routes/", "")
        async with followed(there.url) as looks:
            assert await looks.next() == Look({"a": b"one", "nested__b": b"two", "team/b.yaml": b"two"}, live=False)


def test_what_problems_call_them() -> None:
    folder = KvFolder(ConsulSettings("http://127.0.0.1:8500"), "/swashplate/routes/")
    assert (folder.place, folder.shown("a.yaml")) == (
        "consul:swashplate/routes/",
        "consul:swashplate/routes/a.yaml",
    )


@pytest.mark.parametrize("prefix", ["", "/", "//"])
def test_all_that_consul_has_is_no_folder(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        KvFolder(ConsulSettings("http://127.0.0.1:8500"), prefix)


def test_which_keys_are_files() -> None:
    keys = ["a", "a.yaml", "t/a.yml", "t/a.json", "a.txt", "a.yaml.bak", ".a", ".t/a", "t/", "", "t//a", "../a"]
    assert [key for key in keys if is_operator_file(key)] == ["a", "a.yaml", "t/a.yml", "t/a.json"]
    assert [key for key in keys if is_one_level(key)] == ["a", "a.yaml", "a.txt", "a.yaml.bak"]


async def test_edits_and_deletions_are_live_down_to_nothing() -> None:
    async with agent(a="one") as there, followed(there.url) as looks:
        await looks.next()
        there.put("routes/b", "two")
        assert await looks.next() == Look({"b": b"two"}, live=True)
        there.delete("routes/a")
        assert await looks.next() == Look({"a": None}, live=True)
        there.delete("routes/b")
        assert await looks.next() == Look({"b": None}, live=True)


async def test_values_are_bytes_whatever_they_are() -> None:
    async with agent() as there, followed(there.url) as looks:
        assert await looks.next() == Look({}, live=False)
        there.put("routes/a", b"\xff\x00\n")
        assert await looks.next() == Look({"a": b"\xff\x00\n"}, live=True)
        there.put("routes/a", b"")
        assert await looks.next() == Look({"a": b""}, live=True)


async def test_a_deletion_that_the_server_has_forgotten_is_live() -> None:
    async with agent(a="one", b="two") as there, followed(there.url) as looks:
        await looks.next()
        there.delete("routes/b", forgotten=True)
        assert await looks.next() == Look({"b": None}, live=True)


async def test_a_server_that_began_anew_takes_nothing_away() -> None:
    async with agent(a="one", b="two") as there, followed(there.url) as looks:
        await looks.next()
        there.begin_anew()
        assert await looks.next() == Look({"a": None, "b": None}, live=False)


async def test_keys_that_may_not_be_read_any_more_are_not_gone() -> None:
    """For who has no token there is no other sign of it in a list."""
    async with agent(a="one", b="two") as there, followed(there.url) as looks:
        await looks.next()
        there.denied = {"routes/b"}
        there.wake()
        look = await looks.next()
        assert {key: type(content) for key, content in look.files.items()} == {"b": PermissionError}
        there.denied = set()
        there.put("routes/a", "three")
        assert await looks.next() == Look({"a": b"three", "b": b"two"}, live=True)


async def test_a_prefix_that_may_not_be_read_is_an_error_and_not_empty() -> None:
    async with agent(a="one") as there, followed(there.url) as looks:
        await looks.next()
        there.denied = {"routes/a", "routes/"}
        there.wake()
        assert 'key_prefix "routes/"' in await looks.error()
        there.denied = set()
        assert await looks.next() == Look({}, live=False)


@pytest.mark.parametrize(
    ("status", "said"), [(500, "500 as the test says"), (403, "permission denied"), (429, "429")]
)
async def test_an_answer_that_is_none_changes_nothing_and_is_told(status: int, said: str) -> None:
    async with agent(a="one") as there, followed(there.url) as looks:
        await looks.next()
        there.status = status
        there.wake()
        assert said in await looks.error()
        there.status = None
        there.put("routes/a", "two")
        assert await looks.next() == Look({"a": b"two"}, live=False)


async def test_what_was_deleted_while_nobody_looked_is_gone_when_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "ASK_AGAIN_S", 0.1)
    async with agent(a="one") as there, followed(there.url, "a", "gone") as looks:
        assert await looks.next() == Look({"a": b"one", "gone": None}, live=False)
        assert await looks.next() == Look({"gone": None}, live=True)


async def test_an_agent_that_is_away_is_told_and_followed_again_when_it_is_back() -> None:
    there = KvAgent()
    there.put("routes/a", "one")
    async with AsyncExitStack() as stack:
        async with there.running():
            looks = await stack.enter_async_context(followed(there.url))
            await looks.next()
        assert "cannot be reached" in await looks.error()
        async with there.running():
            assert await looks.next() == Look({}, live=False)
            there.put("routes/a", "two")
            assert await looks.next() == Look({"a": b"two"}, live=True)


async def test_an_agent_that_hangs_is_told_and_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "LOOK_S", 0.1)
    monkeypatch.setattr(gate, "PATIENCE_S", 0.1)
    async with agent(a="one") as there, followed(there.url) as looks:
        await looks.next()
        there.answers.clear()
        assert "does not answer" in await looks.error()
        there.answers.set()
        there.put("routes/a", "two")
        look = await looks.next()
        assert look.files == {"a": b"two"} or (await looks.next()).files == {"a": b"two"}


async def test_an_agent_that_is_there_and_fails_is_not_asked_all_the_time() -> None:
    async with agent(a="one") as there, followed(there.url) as looks:
        await looks.next()
        there.status = 500
        there.wake()
        await looks.next()
        asked = there.asked
        await asyncio.sleep(1.0)
        assert there.asked - asked <= 3
