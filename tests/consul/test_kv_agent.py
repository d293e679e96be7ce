"""Keys of Consul as a folder, against a real agent: rights, deletions, and an agent that hangs or forgets."""

from collections.abc import Callable
from pathlib import Path

import pytest

from discovery.consul.kv import KvFolder
from discovery.consul.settings import ConsulSettings
from operator_files.folder import Look
from tests.consul.looks import following
from tests.registries.consul_agent import ConsulAgent
from tests.registries.fixtures import unique


def folder(agent: ConsulAgent, prefix: str, token: str = "") -> KvFolder:
    return KvFolder(ConsulSettings(agent.url, token=token), prefix)


async def test_edits_and_deletions(consul: ConsulAgent) -> None:
    prefix = unique("routes")
    await consul.put(f"{prefix}/a.yaml", "one")
    await consul.put(f"{prefix}-old/b", "not ours")
    async with following(folder(consul, prefix)) as looks:
        assert await looks.next() == Look({"a.yaml": b"one"}, live=False)
        await consul.put(f"{prefix}/team/b c", "\u00fcber")
        assert await looks.next() == Look({"team/b c": "\u00fcber".encode()}, live=True)
        await consul.delete(f"{prefix}/team/b c")
        assert await looks.next() == Look({"team/b c": None}, live=True)
        await consul.delete(f"{prefix}/a.yaml")
        assert await looks.next() == Look({"a.yaml": None}, live=True)
        await consul.put(f"{prefix}/a.yaml", "two")
        assert await looks.next() == Look({"a.yaml": b"two"}, live=True)


async def test_a_prefix_that_nobody_wrote_to_is_empty_and_not_an_error(consul: ConsulAgent) -> None:
    prefix = unique("routes")
    async with following(folder(consul, prefix)) as looks:
        assert await looks.next() == Look({}, live=False)
        await consul.put(f"{prefix}/a", "one")
        assert await looks.next() == Look({"a": b"one"}, live=True)


async def test_a_token_that_is_deleted_takes_nothing_away(consul_acl: ConsulAgent) -> None:
    prefix = unique("routes")
    token = await consul_acl.allow(unique("kv"), f'key_prefix "{prefix}/" {{ policy = "read" }}')
    await consul_acl.put(f"{prefix}/a", "one")
    async with following(folder(consul_acl, prefix, token)) as looks:
        assert await looks.next() == Look({"a": b"one"}, live=False)
        await consul_acl.revoke(token)
        await consul_acl.put(f"{prefix}/a", "two")  # what is held is still answered by the rights it was asked with
        assert await looks.next() == Look({"a": b"two"}, live=True)
        said = await looks.error()
        assert "permission denied" in said or "refuses the token" in said


async def test_another_token_in_the_file_is_used_at_once(consul_acl: ConsulAgent, tmp_path: Path) -> None:
    prefix, other = unique("routes"), unique("other")
    file = tmp_path / "token"
    file.write_text(await consul_acl.allow(unique("kv"), f'key_prefix "{prefix}/a" {{ policy = "read" }}'))
    for key in "ab":
        await consul_acl.put(f"{prefix}/{key}", key)
    settings = ConsulSettings(consul_acl.url, token_file=file)
    async with following(KvFolder(settings, prefix)) as looks:
        assert await looks.next() == Look({"a": b"a"}, live=False)
        file.write_text(await consul_acl.allow(other, f'key_prefix "{prefix}/" {{ policy = "read" }}'))
        assert (await looks.next()).files["b"] == b"b"


@pytest.mark.parametrize("rules", ["", 'node_prefix "" { policy = "read" }'], ids=["anonymous", "without keys"])
async def test_who_may_read_nothing_is_told_so(consul_acl: ConsulAgent, rules: str) -> None:
    prefix = unique("routes")
    await consul_acl.put(f"{prefix}/a", "one")
    token = await consul_acl.allow(unique("kv"), rules) if rules else ""
    async with following(folder(consul_acl, prefix, token), "a") as looks:
        assert f'key_prefix "{prefix}/"' in await looks.error()


async def test_keys_that_a_policy_takes_away_are_not_gone(consul_acl: ConsulAgent) -> None:
    prefix, policy = unique("routes"), unique("kv")
    token = await consul_acl.allow(policy, f'key_prefix "{prefix}/" {{ policy = "read" }}')
    for key in "abc":
        await consul_acl.put(f"{prefix}/{key}", key)
    keys = folder(consul_acl, prefix, token)
    async with following(keys) as looks:
        assert (await looks.next()).files.keys() == {"a", "b", "c"}
        assert keys.notes == ()
        found = await consul_acl.call("GET", f"/v1/acl/policy/name/{policy}")
        rules = f'key_prefix "{prefix}/" {{ policy = "read" }} key "{prefix}/b" {{ policy = "deny" }}'
        await consul_acl.call("PUT", f"/v1/acl/policy/{found['ID']}", {"Name": policy, "Rules": rules})
        await consul_acl.put(f"{prefix}/c", "one")  # by the rights it was asked with
        assert await looks.next() == Look({"c": b"one"}, live=True)
        await consul_acl.put(f"{prefix}/c", "two")
        look = await looks.next()
        assert {key: type(content) for key, content in look.files.items()} == {"b": PermissionError, "c": bytes}
        (note,) = keys.notes
        assert f"`{prefix}/`" in note
        await consul_acl.delete(f"{prefix}/c")
        assert await looks.next() == Look({"c": None}, live=True)


async def test_an_agent_that_forgot_everything_takes_nothing_away(make_consul: Callable[..., ConsulAgent]) -> None:
    agent = make_consul()
    await agent.put("routes/a", "one")
    async with following(folder(agent, "routes")) as looks:
        assert await looks.next() == Look({"a": b"one"}, live=False)
        await agent.restart()
        look = await looks.next()
        if look.error is not None:  # it was away long enough to be told
            look = await looks.next()
        assert look == Look({"a": None}, live=False)
        await agent.put("routes/a", "two")
        assert await looks.next() == Look({"a": b"two"}, live=True)
