"""Consul's API over sockets: tokens that are rotated, agents that are full, hang or are none."""

import asyncio
import os
from pathlib import Path

import pytest

from discovery.consul.client import ConsulClient, UnreachableError
from discovery.consul.settings import ConsulSettings
from tests.consul.double.model import ModelConsul, Reply, Rules
from tests.consul.double.server import full, served
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until


def guarded() -> ModelConsul:
    model = ModelConsul(acl=True)
    model.tokens["new"] = Rules("", "")
    return model


def rotate(file: Path, token: str) -> None:
    """As secrets are rotated: written beside it, and renamed."""
    beside = file.with_suffix(".new")
    beside.write_text(token)
    os.replace(beside, file)


async def test_a_token_file_is_read_again_when_it_changes_and_when_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("admin\n")
    model = guarded()
    async with served(model) as url, ConsulClient(ConsulSettings(url, token_file=file)) as client:
        assert b"consul" in (await client.get("/v1/catalog/services")).body
        del model.tokens["admin"]
        assert (await client.get("/v1/catalog/services")).status == 403
        rotate(file, "new")
        assert b"consul" in (await client.get("/v1/catalog/services")).body


async def test_a_token_file_that_is_broken_for_a_while_leaves_the_old_token_in_use(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("admin")
    async with served(guarded()) as url, ConsulClient(ConsulSettings(url, token_file=file)) as client:
        assert (await client.get("/v1/catalog/services")).status == 200
        rotate(file, "two words")
        assert b"consul" in (await client.get("/v1/catalog/services")).body
        assert "one token is expected" in client.complaints[0]
        rotate(file, "new")
        await client.get("/v1/catalog/services")
        assert client.complaints == ()


async def test_a_token_file_that_never_was_is_an_error_that_names_it(tmp_path: Path) -> None:
    settings = ConsulSettings("http://127.0.0.1:1", token_file=tmp_path / "none")
    async with ConsulClient(settings) as client:
        with pytest.raises(UnreachableError, match=r"none cannot be used: No such file"):
            await client.get("/v1/catalog/services")


async def test_an_agent_with_no_connection_left_is_told_apart() -> None:
    async with full() as url, ConsulClient(ConsulSettings(url)) as client:
        answer = await client.get("/v1/catalog/services")
        assert answer.status == 429
        assert "http_max_conns_per_client" in answer.refusal()


async def test_an_agent_that_hangs_is_given_up_in_time() -> None:
    model = ModelConsul()
    model.hung = True
    async with served(model) as url, ConsulClient(ConsulSettings(url)) as client:
        with pytest.raises(UnreachableError, match="does not answer"):
            await client.get("/v1/status/leader", timeout=0.1)
        model.hung = False
        model.cut()


async def test_nobody_listens() -> None:
    async with ConsulClient(ConsulSettings(f"http://127.0.0.1:{free_port()}")) as client:
        with pytest.raises(UnreachableError, match=r"cannot be reached: (?!.*ssl)"):
            await client.get("/v1/status/leader")


async def test_a_query_that_waits_is_answered_when_something_changes() -> None:
    model = ModelConsul()
    async with served(model) as url, ConsulClient(ConsulSettings(url)) as client:
        await model.register("web", "10.0.0.1")
        first = await client.blocking("/v1/health/service/web")

        async def asked_twice() -> bool:
            return len(model.asked) == 2

        waiting = asyncio.create_task(client.blocking("/v1/health/service/web", index=first.index))
        await until(asked_twice, "the question", every=0.001)
        await model.register("web", "10.0.0.2")
        assert (await waiting).index > first.index


async def test_what_a_refusal_means_and_what_helps() -> None:
    model = ModelConsul()
    async with served(model) as url, ConsulClient(ConsulSettings(url)) as client:
        for status, text, expected in (
            (403, b"Permission denied", "service_prefix"),
            (429, b"", "http_max_conns_per_client"),
            (500, b"No path to datacenter", "check the datacenters"),
            (500, b"No cluster leader", "No cluster leader"),
        ):
            model.fault = Reply(status, text)
            assert expected in (await client.get("/v1/catalog/services")).refusal()


async def test_no_redirect_takes_the_token_elsewhere() -> None:
    model = ModelConsul()
    model.fault = Reply(302, b"", {"location": "http://127.0.0.1:1/"})
    async with served(model) as url, ConsulClient(ConsulSettings(url, token="secret")) as client:
        assert (await client.get("/v1/catalog/services")).status == 302


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "127.0.0.1:8500"}, "http://127.0.0.1:8500"),
        ({"url": "https://consul:8501", "cert": Path("c.pem")}, "needs its key"),
        ({"url": "http://consul:8500", "ca": Path("ca.pem")}, "no https address"),
        ({"url": "http://consul:8500", "max_connections": 3}, "too few"),
    ],
)
def test_settings_that_contradict_themselves_say_so(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConsulSettings(**fields)  # type: ignore[arg-type]


def test_the_default_namespace_and_partition_are_not_named() -> None:
    assert ConsulSettings("http://c:1", namespace="default", partition="default").enterprise_params == {}
    assert ConsulSettings("http://c:1", namespace="a", partition="b").enterprise_params == {
        "ns": "a",
        "partition": "b",
    }
