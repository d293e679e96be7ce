"""Endpoints by DNS name beside IP addresses: a name never comes into an assignment that is sent by EDS."""

from pathlib import Path

import pytest

from discovery.registry import Evidence, Registry
from mesh.mesh import Mesh
from mesh.service import Endpoint, Port, Service, ServiceName
from tests.translate.meshes import seen
from tests.translate.static_envoy import messages, refusal, static_config
from xds.resources import types
from xds.resources.snapshot import Snapshot

A = ServiceName("default", "a")
BY_IP = Endpoint("10.0.0.1", 8080, other_addresses=("fd00::1",))
BY_NAME = Endpoint("db.internal", 5432)


def service(*ports: tuple[int, Endpoint]) -> Service:
    return Service(A, tuple(Port("", number, endpoints=(endpoint,)) for number, endpoint in ports))


class World:
    def __init__(self) -> None:
        self.registry = Registry(["kubernetes", "consul"], lambda _: None, lambda: 1000.0)

    def publish(self, source: str, value: Service | None) -> None:
        self.registry.feed(source).publish({A: value}, Evidence.LIVE)

    @property
    def snapshot(self) -> Snapshot:
        return seen(Mesh(self.registry.snapshot))

    def sent_by_eds(self) -> dict[str, list[str]]:
        return {
            name: [
                one["endpoint"]["address"]["socket_address"]["address"]
                for group in assignment.get("endpoints", ())
                for one in group["lb_endpoints"]
            ]
            for name, assignment in messages(self.snapshot, types.ENDPOINT).items()
        }

    def resolved(self) -> dict[str, list[tuple[str, int]]]:
        """The endpoints (with weights) of clusters that Envoy resolves itself."""
        return {
            name: [
                (one["endpoint"]["address"]["socket_address"]["address"], one.get("load_balancing_weight", 1))
                for group in cluster["load_assignment"]["endpoints"]
                for one in group["lb_endpoints"]
            ]
            for name, cluster in messages(self.snapshot, types.CLUSTER).items()
            if cluster.get("cluster_type", {}).get("name") == "envoy.cluster.dns"
        }


@pytest.fixture
def world() -> World:
    world = World()
    world.publish("kubernetes", service((80, BY_IP), (81, BY_IP)))
    return world


def test_a_port_with_a_name_is_resolved_as_a_whole_and_other_ports_are_not(world: World) -> None:
    before = world.sent_by_eds()
    assert sorted(before.values()) == [["10.0.0.1"], ["10.0.0.1"]]
    world.publish("consul", service((80, BY_NAME)))
    (resolved,) = world.resolved().values()
    assert sorted(resolved) == [("10.0.0.1", 1), ("db.internal", 1)]
    assert sorted(world.sent_by_eds().values()) == [["10.0.0.1"]]
    world.publish("consul", None)
    assert world.sent_by_eds() == before
    assert world.resolved() == {}


def test_shares_hold_for_names_too(world: World) -> None:
    world.publish("consul", service((80, BY_NAME)))
    world.registry.weigh({A: {"kubernetes": 9000, "consul": 1000}})
    (resolved,) = world.resolved().values()
    assert sorted(resolved) == [("10.0.0.1", 9), ("db.internal", 1)]


def test_a_name_that_is_left_out_leaves_the_port_to_eds(world: World) -> None:
    world.publish("consul", service((80, BY_NAME)))
    world.registry.weigh({A: {"kubernetes": 1}})
    assert world.resolved() == {}
    assert sorted(world.sent_by_eds().values()) == [["10.0.0.1"], ["10.0.0.1"]]


def test_envoy_takes_names_beside_addresses(world: World, newest_envoy: Path, tmp_path: Path) -> None:
    world.publish("consul", service((80, BY_NAME)))
    assert refusal(newest_envoy, static_config(world.snapshot), tmp_path) == ""
