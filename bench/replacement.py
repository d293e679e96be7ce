"""Replacing clusters and routes under load: gated by ACKs beside sending in order, through a real Envoy.

Each round is one edit that takes clusters away and routes to new ones: a new service with a route to it, a renamed
service, swapped subsets, a removal. "In order" sends clusters, endpoints, listeners and routes one behind the other
as soon as they have changed, and removes what is gone with the same response, as servers without a gate do.

Run it as `python -m bench.replacement [ROUNDS]`.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from unittest.mock import patch

from mesh.mesh import Mesh
from mesh.rule import Forward, HeaderEdits, Rule, ServiceRoutes, Subset
from mesh.service import Endpoint, Port, Service, ServiceName
from mesh.split import ServiceRef, Split, SubsetRef
from swashplate.address import Address
from swashplate.bootstrap import Client, envoy_bootstrap
from swashplate.envoy_binary import find
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Answer, Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.upstream import Upstream
from xds.host.server import XdsServer
from xds.resources.snapshot import Layers
from xds.streams import stream
from xds.streams.rollout import Pace, Rollout
from xds.streams.type_state import TypeState
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

HOST: Final = "127.0.0.1"
SHOP: Final = ServiceName("default", "shop")
ROUNDS: Final = 200


class InOrder(Rollout):
    """What a server without a gate shows: everything, at once."""

    def shown(self, type_url: str, now: float, states: Mapping[str, TypeState]) -> Layers | None:
        return self.target.layers.get(type_url, ())


@dataclass(frozen=True, slots=True)
class Outcome:
    """`rounds` edits came into force while `requests` were answered, `failed` of them not with 200."""

    rounds: int
    requests: int
    failed: int
    seconds: float


def edits(endpoint: Endpoint, rounds: int) -> Iterator[Mesh]:
    """The mesh before the first round, and after each."""

    def service(name: ServiceName) -> Service:
        return Service(name, (Port("http", 80, endpoints=(endpoint,)),))

    def routed(edit: int, to: ServiceRef | SubsetRef, *subsets: str) -> ServiceRoutes:
        tell = HeaderEdits(set=(("x-edit", str(edit)),))
        rule = Rule("main", Forward(Split.all_to(to)), response_headers=tell)
        return ServiceRoutes(SHOP, subsets=tuple(Subset(name, frozenset()) for name in subsets), rules=(rule,))

    yield Mesh({SHOP: service(SHOP)}, {SHOP: routed(0, SubsetRef("s0"), "s0")})
    for number in range(1, rounds + 1):
        mine = ServiceName("default", f"shop-{number // 4}" + ("-renamed" if number % 4 == 2 else ""))
        if number % 4 in (1, 2):
            yield Mesh({SHOP: service(SHOP), mine: service(mine)}, {SHOP: routed(number, ServiceRef(mine))})
        else:
            yield Mesh({SHOP: service(SHOP)}, {SHOP: routed(number, SubsetRef(f"s{number}"), f"s{number}")})


async def replace(binary: Path, directory: Path, *, incremental: bool, rounds: int = ROUNDS) -> Outcome:
    """Runs the rounds against one Envoy under load; each begins when the one before is in force."""
    egress, admin = Address(HOST, free_port()), Address(HOST, free_port())
    composer = Composer(TranslationSettings(egress=(HOST, egress.port), vhds=True))
    server = XdsServer(composer.view, listen=f"{HOST}:0", identifier="bench", pace=Pace(drain=0.5))
    async with Upstream() as upstream:
        address, _, port = upstream.address.rpartition(":")
        meshes = edits(Endpoint(address, int(port)), rounds)
        composer.update(next(meshes))
        xds = Address(HOST, await server.start())
        client = Client(node_id="bench", cluster="caller", servers=(xds,), admin=admin, incremental=incremental)
        try:
            async with Envoy(binary, envoy_bootstrap(client), directory, "bench") as envoy:
                await envoy.live()
                async with Load(egress, "shop", connections=4, rate=400) as load:
                    await load.more(20)
                    start = time.monotonic()
                    for number, mesh in enumerate(meshes, 1):
                        composer.update(mesh)
                        server.publish()
                        await load.in_force(_edit(number), time.monotonic())
                    await load.more(20)
                return Outcome(rounds, len(load.answers), len(load.failures()), time.monotonic() - start)
        finally:
            await server.stop(0.1)


def _edit(number: int) -> Callable[[Answer], bool]:
    return lambda answer: answer.edit == str(number)


async def main(rounds: int) -> None:
    binary = find(None)
    assert binary is not None, "no envoy binary is found"
    print(f"{rounds} rounds of replacing clusters and routes under load, one Envoy")
    print(f"{'variant':20} {'order':10} {'requests':>9} {'failed':>7} {'failed a 1,000':>15} {'ms a round':>11}")
    for incremental in (False, True):
        for gated in (True, False):
            with TemporaryDirectory() as directory, patch.object(stream, "Rollout", Rollout if gated else InOrder):
                found = await replace(binary, Path(directory), incremental=incremental, rounds=rounds)
            print(
                f"{'incremental' if incremental else 'state of the world':20} {'gated' if gated else 'in order':10}"
                f" {found.requests:9} {found.failed:7} {found.failed / found.requests * 1000:15.2f}"
                f" {found.seconds / found.rounds * 1000:11.1f}"
            )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
