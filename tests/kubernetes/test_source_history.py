"""Whatever happens to a cluster and to its API server: in the end the registry has what is there, and on the way
nothing is lost that nobody saw go."""

import asyncio
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from discovery.kubernetes.errors import ApiError
from discovery.kubernetes.index import ServiceIndex
from discovery.kubernetes.objects import EndpointSlice, Key, Known, Service
from discovery.kubernetes.settings import KubernetesSettings
from mesh.service import ServiceName
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.life import DOWN, Life, cluster_of
from tests.kubernetes.double.seat import run, settle
from tests.kubernetes.manifests import SHOP, endpoint, pod_metadata, service, slice_

NAMES = ("checkout", "pricing")
RESOURCES = (Service, EndpointSlice, Known)
ALWAYS = (
    service(name="always"),
    slice_(endpoint("10.9.9.9", "always-1"), name="always-1", service="always"),
    pod_metadata("always-1"),
)
"""What no step takes away, so that no list is wholly empty."""

Step = Callable[["World"], None]


class World:
    """The cluster, and whether it can be heard."""

    def __init__(self) -> None:
        self.cluster: Cluster = cluster_of(*ALWAYS)
        self.objects: dict[tuple[type[Known], Key], Known] = {}

    def put(self, one: Known) -> None:
        self.objects[type(one), one.key] = one
        self.cluster.put(one)

    def delete(self, number: int) -> None:
        """Of Services and slices; a pod that goes before its slices leaves its labels, on purpose."""
        if left := sorted((one for one in self.objects if one[0] is not Known), key=str):
            self.cluster.delete(self.objects.pop(left[number % len(left)]))

    def wanted(self) -> ServiceIndex:
        """What the objects come to, all put down at once."""
        index = ServiceIndex(KubernetesSettings())
        for one in (*ALWAYS, *self.objects.values()):
            if isinstance(one, Service):
                index.take_services({one.key: one})
            elif isinstance(one, EndpointSlice):
                index.take_slices({one.key: one})
            else:
                index.take_pods({one.key: one})
        return index


def _slice(name: str, hosts: frozenset[int]) -> EndpointSlice:
    return slice_(
        *(endpoint(f"10.0.0.{host}", f"pod-{host}") for host in sorted(hosts)), name=f"{name}-1", service=name
    )


def _put_service(name: str, port: int) -> Step:
    return lambda world: world.put(service([{"name": "http", "port": port}], name=name))


def _put_slice(name: str, hosts: frozenset[int]) -> Step:
    return lambda world: world.put(_slice(name, hosts))


def _put_pod(host: int, version: str) -> Step:
    return lambda world: world.put(pod_metadata(f"pod-{host}", version=version))


def _delete(number: int) -> Step:
    return lambda world: world.delete(number)


def _fault(resource: int, status: int) -> Step:
    def step(world: World) -> None:
        api = world.cluster.of(RESOURCES[resource])
        api.fault = ApiError(status, "", "says the test") if status else DOWN
        api.cut()

    return step


def _whole(what: str) -> Step:
    def step(world: World) -> None:
        if what == "well":
            world.cluster.fault(None)
        for api in world.cluster.all():
            if what == "compact":
                api.compact()
            elif what == "cut":
                api.cut()

    return step


HOSTS = st.integers(1, 4)
STEPS = st.one_of(
    st.builds(_put_service, st.sampled_from(NAMES), st.sampled_from([80, 81])),
    st.builds(_put_slice, st.sampled_from(NAMES), st.frozensets(HOSTS, max_size=3)),
    st.builds(_put_pod, HOSTS, st.sampled_from(["v1", "v2"])),
    st.builds(_delete, st.integers(0, 9)),
    st.builds(_fault, st.integers(0, 2), st.sampled_from([0, 403, 500])),
    st.builds(_whole, st.sampled_from(["well", "compact", "cut"])),
)
WAITS = st.sampled_from([0.001, 0.001, 1.0, 6.0, 40.0])


@given(st.lists(st.tuples(STEPS, WAITS), max_size=12))
@settings(max_examples=60, deadline=None)
def test_in_the_end_the_registry_has_what_is_there(steps: list[tuple[Step, float]]) -> None:
    async def scenario() -> None:
        world = World()
        async with Life(world.cluster) as life:
            for step, wait in steps:
                step(world)
                await asyncio.sleep(wait)
                assert ServiceName(SHOP, "always") in life.registry.services
            world.cluster.fault(None)
            await asyncio.sleep(120)
            await settle()
            wanted = world.wanted()
            names = wanted.names("")
            assert dict(life.registry.services) == {
                name: found for name in names if (found := wanted.mapped(name).service) is not None
            }
            assert {name: left for name in names if (left := wanted.mapped(name).left_out)} == life.feed.left_out
            assert life.feed.held == {}
            assert life.source.freshness.error == ""

    run(scenario)
