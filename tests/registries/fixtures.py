"""Real registries for any test: started when first asked for, shared by the tests of a worker, gone with it.

Whoever stops or pauses a shared one leaves it running. Names in it belong to one test each: namespaces are new, and
services of Consul are told apart by `unique`.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, Final

import pytest

from tests.registries.build import APISERVER, CONSUL, CONTROLLERS, Program, missing
from tests.registries.consul_agent import ConsulAgent
from tests.registries.kube_api import KubeApi

_GROUPS: Final = {
    "kubernetes": {"kube", "make_kube"},
    "consul": {"consul", "consul_acl", "make_consul"},
}
_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "registries: needs a real Kubernetes API server or Consul agent")


@pytest.hookimpl(wrapper=True)  # xdist looks at the groups in its own hook, which would come first
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Marks the tests that use a registry, and keeps those of a kind on one worker: one server serves all."""
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        groups = [group for group, fixtures in _GROUPS.items() if used & fixtures]
        if groups:
            item.add_marker(pytest.mark.registries)
        if item.get_closest_marker("own_network"):
            groups = ["own-network"]  # all of them run in one process
        if groups and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(groups[0]))
    yield


def _need(*programs: Program) -> None:
    if reason := missing(*programs):
        pytest.skip(reason)


def unique(name: str) -> str:
    """The name with a number that no other test of this process has."""
    return f"{name}-{next(_numbers)}"


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApi]:
    """A Kubernetes API server with the endpoint slice controller."""
    _need(APISERVER, CONTROLLERS)
    api = KubeApi(tmp_path_factory.mktemp("kube"))
    try:
        api.start()
        yield api
    finally:
        api.stop()


@pytest.fixture(scope="session")
def consul(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsulAgent]:
    """A Consul agent without ACLs, which keeps what it has over a restart."""
    yield from _agent(tmp_path_factory, durable=True)


@pytest.fixture(scope="session")
def consul_acl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsulAgent]:
    """A Consul agent that denies what no token allows, which keeps what it has over a restart."""
    yield from _agent(tmp_path_factory, durable=True, acl=True)


def _agent(tmp_path_factory: pytest.TempPathFactory, **how: Any) -> Iterator[ConsulAgent]:
    _need(CONSUL)
    agent = ConsulAgent(tmp_path_factory.mktemp("consul"), **how)
    try:
        agent.start()
        yield agent
    finally:
        agent.stop()


@pytest.fixture
def make_kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., KubeApi]]:
    """Makes API servers of the test's own, with the arguments of KubeApi. They run."""
    _need(APISERVER, CONTROLLERS)
    with ExitStack() as running:

        def make(**how: Any) -> KubeApi:
            api = KubeApi(tmp_path_factory.mktemp("kube"), **how)
            running.callback(api.stop)
            api.start()
            return api

        yield make


@pytest.fixture
def make_consul(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ConsulAgent]]:
    """Makes agents of the test's own, with the arguments of ConsulAgent. They run."""
    _need(CONSUL)
    with ExitStack() as running:

        def make(**how: Any) -> ConsulAgent:
            agent = ConsulAgent(tmp_path_factory.mktemp("consul"), **how)
            running.callback(agent.stop)
            agent.start()
            return agent

        yield make
