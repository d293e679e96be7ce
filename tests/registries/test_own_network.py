"""Tests that run in a network of their own: their addresses are there, everybody else's are not."""

import errno
import socket

import aiohttp
import pytest

from tests.e2e.harness.upstream import Upstream
from tests.registries.own_network import pod_addresses


@pytest.mark.own_network
@pytest.mark.parametrize("number", [0, 253])
async def test_pods_have_addresses_that_traffic_reaches(number: int) -> None:
    address = list(pod_addresses())[number]
    async with (
        Upstream("pod", host=address) as pod,
        aiohttp.ClientSession() as http,
        http.get(f"http://{address}:{pod.port}/") as response,
    ):
        assert response.headers["x-subset"] == "pod"


@pytest.mark.own_network
def test_nothing_else_is_reachable() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anywhere:
        assert anywhere.connect_ex(("198.51.100.1", 9)) == errno.ENETUNREACH


def test_other_tests_have_the_machines_network() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as pod, pytest.raises(OSError, match="Cannot assign"):
        pod.bind((next(pod_addresses()), 0))
