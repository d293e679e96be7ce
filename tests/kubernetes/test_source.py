"""Kubernetes as a source: what the registry has after changes, outages, restarts and refusals. In fake time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from discovery.kubernetes.errors import ApiError, UnreachableError
from discovery.kubernetes.objects import EndpointSlice, Known, Namespace, Service
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.source import KubernetesSource
from discovery.left_out import Reason
from discovery.registry import Registry
from mesh.rule import Forward, ServiceRoutes
from mesh.service import Labels, ServiceName
from operator_files.store import LastGoodStore
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.seat import run, settle
from tests.kubernetes.manifests import CHECKOUT, SHOP, endpoint, of, pod, pod_metadata, service, slice_

DOWN = UnreachableError("https://10.96.0.1: cannot connect")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")
PRICING = ServiceName(SHOP, "pricing")


class Life:
    """One life of a server, as far as Kubernetes goes."""

    def __init__(self, cluster: Cluster, state: Path | None = None, **settings: Any) -> None:
        self.cluster = cluster
        self.registry = Registry(["kubernetes"], lambda _: None, self.now)
        self.feed = self.registry.feed("kubernetes")
        self.errors: list[str] = []
        self.routes: dict[ServiceName, ServiceRoutes | None] = {}
        self.routed = 0
        self.store = LastGoodStore(state) if state is not None else None
        self.source = KubernetesSource(
            KubernetesSettings(**settings),
            self.feed,
            store=self.store,
            now=self.now,
            on_error=self.errors.append,
            on_routes=self._routed,
            api=cluster,
            uniform=lambda low, high: round((low + high) / 2, 3),
        )
        self._running: asyncio.Task[None] | None = None

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    def hosts(self) -> dict[str, list[str]]:
        return {
            name.name: [endpoint.address for port in service.ports for endpoint in port.endpoints]
            for name, service in sorted(self.registry.services.items())
        }

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = self.now() + 60
        while not holds():
            assert self.now() < deadline, (self.hosts(), self.registry.statuses())
            await asyncio.sleep(0.01)

    def labels(self, name: ServiceName = CHECKOUT) -> list[Labels]:
        return [one.labels for port in self.registry.services[name].ports for one in port.endpoints]

    @property
    def synced(self) -> bool:
        return self.registry.statuses()[0].synced_at is not None

    def _routed(self, changes: Mapping[ServiceName, ServiceRoutes | None]) -> None:
        self.routes |= changes
        self.routed += 1

    async def __aenter__(self) -> "Life":
        self._running = asyncio.create_task(self.source.run())
        await settle()
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._running is not None
        assert not self._running.done(), self._running
        self._running.cancel()
        await asyncio.wait([self._running])
        await self.source.keep()
        if self.store is not None:
            self.store.close()
        if failure == (None, None, None):
            assert asyncio.all_tasks() == {asyncio.current_task()}


def checkout(*addresses: str, ready: bool = True) -> EndpointSlice:
    return slice_(*(endpoint(address, f"pod-{address}", ready=ready) for address in addresses))


def cluster_of(*objects: Known) -> Cluster:
    cluster = Cluster()
    cluster.put(*objects)
    return cluster


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test in fake time; of pytest's fixtures it may take `tmp_path`."""

    def with_path(tmp_path: Path) -> None:
        run(lambda: test(tmp_path))

    def without() -> None:
        run(test)

    chosen: Callable[..., None] = with_path if test.__code__.co_argcount else without
    chosen.__doc__ = test.__doc__
    return chosen


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
async def test_without_the_right_to_pods_endpoints_have_no_labels_and_a_note_says_so() -> None:
    cluster = cluster_of(service(), checkout("10.0.0.1"))
    cluster.of(Known).fault = FORBIDDEN
    async with Life(cluster) as life:
        assert life.hosts() == {"checkout": ["10.0.0.1"]}
        assert life.labels() == [frozenset()]
        assert life.synced
        assert life.source.freshness.error == ""
        (note,) = life.source.notes
        assert "labels" in note
        assert "pods" in note
        cluster.of(Known).fault = None
        cluster.put(pod_metadata("pod-10.0.0.1", version="v1"))
        await asyncio.sleep(60)
        assert life.labels() == [frozenset({("version", "v1")})]
        assert life.source.notes == ()


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


def body(one: Known) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(one))
    return made
