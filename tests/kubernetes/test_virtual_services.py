"""Splits that labels make: they follow their members, lose nobody to a doubtful answer, and outlive a restart."""

import asyncio
from pathlib import Path

from discovery.kubernetes.objects import Service
from discovery.left_out import Reason
from mesh.rule import Forward
from mesh.service import ServiceName
from operator_files.store import LastGoodStore
from tests.kubernetes.double.life import DOWN, Life, cluster_of, scenario
from tests.kubernetes.double.seat import settle
from tests.kubernetes.manifests import SHOP, endpoint, service, slice_


def member(stack: str, weight: str) -> Service:
    return service(name=stack, labels={"service": "inventory", "weight": weight})


def shares(life: Life) -> dict[str, int]:
    routes = life.routes.get(ServiceName(SHOP, "inventory"))
    if routes is None:
        return {}
    action = routes.rules[0].action
    assert isinstance(action, Forward)
    return {share.to.service.name: share.share for share in action.split.shares if hasattr(share.to, "service")}


@scenario
async def test_virtual_services_follow_their_members_labels(tmp_path: Path) -> None:
    cluster = cluster_of(member("v1", "84"), member("v2", "16"))
    async with Life(cluster, tmp_path, nelson=True) as life:
        assert shares(life) == {"v1": 8400, "v2": 1600}
        assert ServiceName(SHOP, "inventory") in life.registry.services
        routed = life.routed
        cluster.put(slice_(endpoint("10.0.0.1", "a"), name="v1-1", service="v1"))
        await settle()
        assert life.routed == routed
        cluster.put(member("v1", "0"), member("v2", "100"))
        await settle()
        assert shares(life) == {"v1": 0, "v2": 10_000}
        cluster.put(member("v2", "0"))
        await settle()
        assert shares(life) == {"v1": 0, "v2": 10_000}
        assert {one.reason for one in life.feed.left_out[ServiceName(SHOP, "inventory")]} == {Reason.WEIGHT_ZERO}
        cluster.delete(member("v1", "0"))
        cluster.put(member("v2", "50"))
        await settle()
        assert shares(life) == {"v2": 10_000}
    cluster.fault(DOWN)
    async with Life(cluster, tmp_path, nelson=True) as life:
        assert shares(life) == {"v2": 10_000}
        assert ServiceName(SHOP, "inventory") in life.registry.services


@scenario
async def test_a_split_loses_no_destination_to_an_answer_that_nobody_saw_change(tmp_path: Path) -> None:
    cluster = cluster_of(member("v1", "50"), member("v2", "50"))
    async with Life(cluster, tmp_path, nelson=True):
        pass
    cluster.delete(member("v1", "50"))
    async with Life(cluster, tmp_path, nelson=True) as life:
        assert shares(life) == {"v1": 5000, "v2": 5000}
        await asyncio.sleep(10)
        assert shares(life) == {"v2": 10_000}
    cluster.delete(member("v2", "50"))
    async with Life(cluster, tmp_path, nelson=True) as life:
        await asyncio.sleep(600)
        assert shares(life) == {"v2": 10_000}
        assert ServiceName(SHOP, "inventory") in life.registry.services
        assert await life.source.confirm() == {ServiceName(SHOP, "inventory")}
        await settle()
        assert shares(life) == {}
        assert life.hosts() == {}


@scenario
async def test_a_store_that_cannot_be_read_in_parts_says_so_and_loads_the_rest(tmp_path: Path) -> None:
    cluster = cluster_of(member("v1", "50"))
    async with Life(cluster, tmp_path, nelson=True):
        pass
    with LastGoodStore(tmp_path) as store:
        store.save(
            "kubernetes-splits", {"odd": "{}", "older": '{"format":0,"service":["a","b"],"port":1,"shares":[]}'}
        )
    cluster.fault(DOWN)
    async with Life(cluster, tmp_path, nelson=True) as life:
        assert shares(life) == {"v1": 10_000}
        assert len(life.source.notes) == 2
