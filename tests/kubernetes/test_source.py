"""Kubernetes as a source: what the registry has after changes, outages, restarts and refusals. In fake time."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from discovery.kubernetes.errors import ApiError
from discovery.kubernetes.objects import EndpointSlice, Known, Namespace, Service
from discovery.left_out import Reason
from tests.kubernetes.double.life import DOWN, Life, cluster_of, scenario
from tests.kubernetes.double.seat import run, settle
from tests.kubernetes.manifests import CHECKOUT, SHOP, endpoint, of, pod, pod_metadata, service, slice_

FORBIDDEN = ApiError(
    403, "Forbidden", 'pods is forbidden: User "system:serviceaccount:ops:cp" cannot list resource "pods"'
)


def checkout(*addresses: str, ready: bool = True) -> EndpointSlice:
    return slice_(*(endpoint(address, f"pod-{address}", ready=ready) for address in addresses))


@scenario
async def test_what_happens_is_in_the_registry_at_once() -> None:
    async with Life(cluster_of(service(), checkout("10.0.0.1"))) as life:
        assert life.synced
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        before = life.now()
        life.cluster.put(checkout("10.0.0.1", "10.0.0.2"))
        await settle()
        assert life.hosts() == {"checkout": ["10.0.0.1", "10.0.0.2"]}
        life.cluster.put(checkout())
        await settle()
        assert life.hosts() == {"checkout": []}
        life.cluster.put(checkout("10.0.0.3"))
        life.cluster.delete(service())
        await settle()
        assert life.hosts() == {}
        assert life.feed.left_out[CHECKOUT][0].reason is Reason.NOT_SELECTED
        life.cluster.delete(checkout())
        await settle()
        assert life.feed.left_out == {}
        assert life.now() - before < 1


@scenario
async def test_nothing_is_told_before_all_that_is_needed_was_heard() -> None:
    """A Service without its slices would be a service without endpoints."""
    cluster = cluster_of(service(), checkout("10.0.0.1"), pod_metadata("pod-10.0.0.1", version="v1"))
    cluster.of(Known).fault = cluster.of(EndpointSlice).fault = DOWN
    async with Life(cluster) as life:
        await asyncio.sleep(60)
        assert (life.hosts(), life.synced) == ({}, False)
        assert "10.96.0.1" in life.registry.statuses()[0].error
        cluster.of(EndpointSlice).fault = None
        await asyncio.sleep(60)
        assert (life.hosts(), life.synced) == ({}, False)
        cluster.of(Known).fault = None
        await asyncio.sleep(60)
        assert life.labels() == [frozenset({("version", "v1")})]
        assert life.synced
        assert life.source.freshness.error == life.registry.statuses()[0].error == ""


@scenario
async def test_it_is_not_ready_before_all_that_it_heard_is_published() -> None:
    """A proxy that asks in between would be told that the other services do not exist."""
    names = ("a", "b", "c")
    cluster = cluster_of(*(service(name=name) for name in names))
    life = Life(cluster)
    told: list[tuple[int, bool]] = []
    publish = life.feed.publish

    def watched(*what: Any) -> None:
        publish(*what)
        told.append((len(life.hosts()), life.source.freshness.ready))

    turns = patch.multiple("discovery.kubernetes.source", TURN_S=-1.0, TOGETHER=1)
    with turns, patch.object(life.feed, "publish", watched):
        async with life:
            assert life.source.freshness.ready
    assert told[: len(names)] == [(1, False), (2, False), (3, False)]


@scenario
async def test_what_is_much_is_published_in_few_parts_however_long_it_takes() -> None:
    """A first answer has thousands of services, and what the registry tells of each part ends in the log."""
    life = Life(cluster_of(*(service(name=f"web-{number}") for number in range(450))))
    parts: list[int] = []
    publish = life.feed.publish

    def watched(*what: Any) -> None:
        publish(*what)
        parts.append(len(life.hosts()))

    with patch("discovery.kubernetes.source.TURN_S", -1.0), patch.object(life.feed, "publish", watched):
        async with life:
            pass
    assert parts == [200, 400, 450]


@scenario
async def test_a_first_start_without_the_right_to_pods_is_not_ready_and_says_what_to_do() -> None:
    """Endpoints without their labels are in no subset: each caller of one would get an error."""
    cluster = cluster_of(service(), checkout("10.0.0.1"))
    cluster.of(Known).fault = FORBIDDEN
    async with Life(cluster) as life:
        await asyncio.sleep(60)
        assert (life.hosts(), life.synced, life.source.freshness.ready) == ({}, False, False)
        error = life.source.freshness.error
        assert "`swashplate rbac --service-account ops/cp | kubectl apply -f -` gives the rights" in error
        assert "`--kubernetes-pod-labels false`" in error
        assert "what was known stays" not in error
        assert life.errors == [error]
        cluster.of(Known).fault = None
        cluster.put(pod_metadata("pod-10.0.0.1", version="v1"))
        await asyncio.sleep(60)
        assert life.labels() == [frozenset({("version", "v1")})]
        assert life.source.freshness.error == ""
        assert life.source.notes == ()


@scenario
async def test_without_labels_the_right_to_pods_is_not_needed() -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"))
    cluster.of(Known).fault = FORBIDDEN
    async with Life(cluster, pod_labels=False) as life:
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        assert (life.synced, life.source.freshness.error, life.source.notes) == (True, "", ())


@scenario
async def test_a_right_to_pods_that_is_missing_in_one_namespace_costs_no_other_one() -> None:
    there = of(Service, {"metadata": {"name": "web", "namespace": "depot"}, "spec": {"ports": [{"port": 80}]}})
    cluster = cluster_of(service(), checkout("10.0.0.1"), there)
    cluster.of(Known, "depot").fault = FORBIDDEN
    async with Life(cluster, namespaces=("shop", "depot")) as life:
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        assert "--kubernetes-namespaces shop,depot" in life.source.freshness.error


@scenario
async def test_a_right_to_pods_that_is_lost_while_running_is_a_note() -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"), pod_metadata("pod-10.0.0.1", version="v1"))
    async with Life(cluster) as life:
        cluster.of(Known).fault = FORBIDDEN
        cluster.of(Known).cut()
        await asyncio.sleep(60)
        (note,) = life.source.notes
        assert "labels" in note
        assert "--kubernetes-pod-labels false" in note
        assert (life.synced, life.source.freshness.error) == (True, "")
        assert life.labels() == [frozenset({("version", "v1")})]


@scenario
async def test_labels_of_an_earlier_life_outlast_a_lost_right(tmp_path: Path) -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"), pod_metadata("pod-10.0.0.1", version="v1"))
    async with Life(cluster, tmp_path) as life:
        assert life.labels() == [frozenset({("version", "v1")})]
    cluster.of(Known).fault = FORBIDDEN
    async with Life(cluster, tmp_path) as life:
        cluster.put(checkout("10.0.0.1", "10.0.0.2"))
        await settle()
        assert life.labels() == [frozenset({("version", "v1")}), frozenset()]


@scenario
async def test_what_an_earlier_life_left_says_when_it_was_good(tmp_path: Path) -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"))
    async with Life(cluster, tmp_path) as life:
        await asyncio.sleep(500)
        ended = life.now()
        assert life.source.freshness.stored_at is None
    for one in (Known, Service, EndpointSlice):
        cluster.of(one).fault = DOWN
    for _ in range(2):  # a life that hears nothing does not make it younger
        async with Life(cluster, tmp_path) as life:
            await asyncio.sleep(60)
            freshness = life.source.freshness
            assert (freshness.synced_at, freshness.stored) == (None, True)
            assert freshness.stored_at == pytest.approx(ended, abs=5)


@scenario
async def test_an_api_server_that_lost_everything_takes_nothing_away() -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"), service(name="pricing"))
    async with Life(cluster) as life:
        cluster.start_over()
        await asyncio.sleep(600)
        assert life.hosts()["checkout"] == ["10.0.0.1"]
        assert life.feed.held.keys() == {CHECKOUT}
        assert await life.source.confirm() == {CHECKOUT}
        await settle()
        assert life.hosts() == {}
        assert life.feed.held == {}


@scenario
async def test_what_comes_back_after_a_loss_is_believed() -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"), service(name="pricing"))
    async with Life(cluster) as life:
        cluster.start_over()
        await asyncio.sleep(60)
        cluster.put(service(), checkout("10.0.0.2"))
        await asyncio.sleep(60)
        assert life.hosts() == {"checkout": ["10.0.0.2"]}
        assert life.feed.held == {}


@scenario
async def test_what_an_outage_hid_is_asked_for_twice() -> None:
    """The list after it lacks a Service: it is held until a second list lacks it as well, and no longer."""
    kept = slice_(endpoint("10.0.0.9", "p"), name="pricing-1", service="pricing")
    cluster = cluster_of(service(), checkout("10.0.0.1"), service(name="pricing"), kept)
    async with Life(cluster) as life:
        cluster.fault(DOWN)
        await asyncio.sleep(10)
        assert life.hosts() == {"checkout": ["10.0.0.1"], "pricing": ["10.0.0.9"]}
        assert life.registry.statuses()[0].stale_since is not None
        cluster.delete(service(), checkout("10.0.0.1"))
        for api in cluster.all():
            api.compact()
        cluster.fault(None)
        await life.until(lambda: CHECKOUT in life.feed.held)
        assert life.hosts() == {"checkout": ["10.0.0.1"], "pricing": ["10.0.0.9"]}
        await asyncio.sleep(6)
        assert life.hosts() == {"pricing": ["10.0.0.9"]}
        assert life.registry.statuses()[0].stale_since is None


@scenario
async def test_while_a_service_is_held_only_its_own_endpoints_are_evidence() -> None:
    kept = slice_(endpoint("10.0.0.9", "p"), name="pricing-1", service="pricing")
    cluster = cluster_of(service(), checkout("10.0.0.1"), service(name="pricing"), kept)
    async with Life(cluster) as life:
        slices = cluster.of(EndpointSlice)
        slices.fault = DOWN
        slices.cut()
        cluster.delete(checkout("10.0.0.1"))
        slices.compact()
        slices.fault = None
        await life.until(lambda: CHECKOUT in life.feed.held)
        cluster.put(service(labels={"any": "change"}))
        await settle()
        assert life.hosts()["checkout"] == ["10.0.0.1"]
        cluster.put(checkout("10.0.0.2"))
        await settle()
        assert life.hosts()["checkout"] == ["10.0.0.2"]
        assert CHECKOUT not in life.feed.held


@pytest.mark.parametrize("restarts", [False, True])
def test_slices_that_change_are_no_evidence_that_a_service_is_gone_which_only_a_list_lacks(
    tmp_path: Path, restarts: bool
) -> None:
    async def life() -> None:
        cluster = cluster_of(service(), checkout("10.0.0.1"))
        async with Life(cluster, tmp_path) as here:
            cluster.of(Service).lists_empty = True
            cluster.of(Service).expire_live()
            if not restarts:
                await slices_change(here)
        if restarts:
            async with Life(cluster, tmp_path) as here:
                await slices_change(here)

    async def slices_change(here: Life) -> None:
        await asyncio.sleep(10)
        here.cluster.put(checkout("10.0.0.1", "10.0.0.2"))
        await asyncio.sleep(600)
        assert here.hosts() == {"checkout": ["10.0.0.1"]}
        assert here.feed.held.keys() == {CHECKOUT}
        here.cluster.of(Service).lists_empty = False
        await asyncio.sleep(70)
        assert here.hosts() == {"checkout": ["10.0.0.1", "10.0.0.2"]}

    run(life)


@scenario
async def test_a_restart_while_the_api_server_is_away_serves_what_was_there(tmp_path: Path) -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"), pod_metadata("pod-10.0.0.1", version="v1"))
    async with Life(cluster, tmp_path):
        await asyncio.sleep(2)
    cluster.fault(DOWN)
    async with Life(cluster, tmp_path) as life:
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        assert life.labels() == [frozenset({("version", "v1")})]
        assert life.source.freshness.stored
        assert life.source.freshness.stale_since is not None
        assert life.registry.ready
        await asyncio.sleep(60)
        cluster.fault(None)
        await asyncio.sleep(60)
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        assert life.source.freshness.stale_since is None


@scenario
async def test_what_went_between_two_lives_goes_after_a_second_answer(tmp_path: Path) -> None:
    kept = slice_(endpoint("10.0.0.9", "p"), name="pricing-1", service="pricing")
    cluster = cluster_of(service(), checkout("10.0.0.1"), service(name="pricing"), kept)
    async with Life(cluster, tmp_path):
        await asyncio.sleep(2)
    cluster.delete(service(), checkout("10.0.0.1"))
    async with Life(cluster, tmp_path) as life:
        assert life.hosts() == {"checkout": ["10.0.0.1"], "pricing": ["10.0.0.9"]}
        await asyncio.sleep(10)
        assert life.hosts() == {"pricing": ["10.0.0.9"]}


@scenario
async def test_namespaces_that_are_named_are_read_one_by_one_and_a_refused_one_costs_no_other(tmp_path: Path) -> None:
    def other(of_service: str, namespace: str) -> tuple[Known, ...]:
        one = slice_(endpoint("10.0.1.1", "b"), name="s", service=of_service)
        return tuple(
            of(type(it), {"metadata": {}} | body(it), namespace=namespace) for it in (service(name=of_service), one)
        )

    cluster = cluster_of(service(), checkout("10.0.0.1"), *other("stock", "depot"))
    async with Life(cluster, tmp_path, namespaces=(SHOP, "depot")) as life:
        assert life.hosts() == {"checkout": ["10.0.0.1"], "stock": ["10.0.1.1"]}
        assert cluster.of(Service).count() == 0
    cluster.of(EndpointSlice, "depot").fault = FORBIDDEN
    async with Life(cluster, tmp_path, namespaces=(SHOP, "depot")) as life:
        cluster.put(checkout("10.0.0.2"))
        await settle()
        assert life.hosts() == {"checkout": ["10.0.0.2"], "stock": ["10.0.1.1"]}
        assert life.registry.ready
        assert "endpointslices" in life.source.freshness.error
    async with Life(cluster, tmp_path, namespaces=(SHOP,)) as life:
        assert life.hosts() == {"checkout": ["10.0.0.2"]}


@scenario
async def test_a_namespace_that_a_selector_selects_comes_and_goes() -> None:
    shop = of(Namespace, {"metadata": {"name": SHOP, "namespace": ""}})
    cluster = cluster_of(service(), checkout("10.0.0.1"))
    async with Life(cluster, namespace_selector="mesh=yes") as life:
        assert life.synced
        assert life.hosts() == {}
        cluster.put(shop)
        await settle()
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        cluster.delete(shop)
        await settle()
        assert life.hosts() == {}
        cluster.put(shop)
        await settle()
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        # A list without it is no proof.
        cluster.of(Namespace).start_over()
        await asyncio.sleep(60)
        cluster.put(checkout("10.0.0.2"))
        await settle()
        assert life.hosts() == {"checkout": ["10.0.0.2"]}
        await life.source.confirm()
        await settle()
        assert life.hosts() == {}


@scenario
async def test_pods_by_label() -> None:
    ready = pod("a", tbn_cluster="checkout")
    async with Life(cluster_of(ready), pods=True) as life:
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        assert life.registry.services[CHECKOUT].ports[0].number == 80
        life.cluster.put(pod("a", "status: {phase: Failed}", tbn_cluster="checkout"))
        await settle()
        assert life.hosts() == {"checkout": []}
        assert [one.reason for one in life.feed.left_out[CHECKOUT]] == [Reason.TERMINATED]
        life.cluster.delete(ready)
        await settle()
        assert life.hosts() == {}
        assert life.feed.left_out == {}


def body(one: Known) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(one))
    return made
