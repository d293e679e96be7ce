"""What one change costs the engine of streams, at 100, 1,000 and 10,000 services: it has to be the same.

Run it as `python bench/streams.py`. Incremental proxies that have everything are told of one endpoint's change, or of
one virtual host's, by the engine alone, without gRPC. Times are of the process's own CPU; the first proxy computes
what all of them share, the others use it.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any, Final

import envoy_api
from mesh.match import Match
from mesh.mesh import Mesh
from mesh.rule import Forward, Rule, ServiceRoutes
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from mesh.split import ServiceRef, Split
from xds.resources import types
from xds.streams.shared import Shared
from xds.streams.stream import DELTA, SOTW, Server, Stream, Variant
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

SIZES: Final = (100, 1_000, 10_000)
PROXIES, EDITS, ENDPOINTS = 50, 30, 10
TARGET: Final = 1.5
NODE: Final = {
    "id": "proxy",
    "user_agent_name": "envoy",
    "user_agent_build_version": {"version": {"major_number": 1, "minor_number": 40}},
}
NOW: Final = 1_000.0


def name(number: int) -> ServiceName:
    return ServiceName("default", f"service-{number:05}")


def service(number: int, edit: int = 0) -> Service:
    endpoints = tuple(Endpoint(f"10.{edit % 250}.{number % 250}.{i}", 8080) for i in range(ENDPOINTS))
    return Service(name(number), (Port("", 80, Protocol.HTTP1, endpoints),))


def routes(number: int, edit: int = 0) -> ServiceRoutes:
    to = Forward(Split.all_to(ServiceRef(name(number), None)))
    return ServiceRoutes(name(number), rules=(Rule(f"edit-{edit}", to, (Match(),)),), source="bench")


class Client:
    """A proxy that subscribes to everything and acknowledges everything at once."""

    def __init__(self, server: Server, variant: Variant, clusters: list[str]) -> None:
        kind = "Discovery" if variant is SOTW else "DeltaDiscovery"
        self._request = f"envoy.service.discovery.v3.{kind}Request"
        self._response = envoy_api.message_class(f"envoy.service.discovery.v3.{kind}Response")
        self._sotw = variant is SOTW
        self._names = {types.ENDPOINT: clusters, types.ROUTE: ["egress"]}
        self.stream = Stream(server, variant, None, "bench", NOW)
        asked = [types.CLUSTER, types.ENDPOINT, types.LISTENER, types.ROUTE]
        for url in [*asked, types.VIRTUAL_HOST] if variant is DELTA else asked:
            key = "resource_names" if self._sotw else "resource_names_subscribe"
            self._say(url, **{key: self._names.get(url, [])}, node=NODE)
            self.take()

    def _say(self, url: str, **fields: Any) -> None:
        self.stream.receive(envoy_api.parse(self._request, {"type_url": url, **fields}).SerializeToString(), NOW)

    def frames(self) -> list[bytes]:
        found = []
        while (data := self.stream.next_frame(NOW)) is not None:
            found.append(data)
        return found

    def acknowledgement(self, data: bytes) -> bytes:
        response: Any = self._response.FromString(data)
        fields: dict[str, Any] = {"type_url": response.type_url, "response_nonce": response.nonce}
        if self._sotw:
            fields |= {
                "version_info": response.version_info,
                "resource_names": self._names.get(response.type_url, []),
            }
        return bytes(envoy_api.parse(self._request, fields).SerializeToString())

    def take(self) -> None:
        while frames := self.frames():
            for data in frames:
                self.stream.receive(self.acknowledgement(data), NOW)


class Fleet:
    """Proxies of one server with that many services."""

    def __init__(self, services: int, variant: Variant, proxies: int) -> None:
        self._composer = Composer(TranslationSettings(vhds=True))
        numbers = range(services)
        self._mesh = Mesh().with_changes(
            {name(number): service(number) for number in numbers},
            {name(number): routes(number) for number in numbers},
        )
        self._composer.update(self._mesh)
        self._server = Server(self._composer.view, Shared("bench"))
        clusters = [resource.name for resource in self._first_view()]
        self.clients = [Client(self._server, variant, clusters) for _ in range(proxies)]

    def _first_view(self) -> list[Any]:
        node = replace(envoy_node(), incremental_ads=True)
        return list(self._composer.view(node).all(types.ENDPOINT))

    def endpoint(self, edit: int) -> None:
        """One service has other endpoints."""
        self._mesh = self._mesh.with_changes({name(edit): service(edit, edit + 1)})
        self._composer.update(self._mesh)

    def host(self, edit: int) -> None:
        """One service has another rule."""
        self._mesh = self._mesh.with_changes({}, {name(edit): routes(edit, edit + 1)})
        self._composer.update(self._mesh)

    def cost(self, change: Callable[[int], None]) -> tuple[float, float, int]:
        """Seconds for the first proxy and for each other, from the new view to the ACK; and bytes sent to one."""
        firsts, others, size = [], [], 0
        for edit in range(EDITS):
            change(edit)
            times = []
            for client in self.clients:
                start = time.process_time_ns()
                client.stream.published(NOW)
                frames = client.frames()
                taken = time.process_time_ns() - start
                answers = [client.acknowledgement(data) for data in frames]
                start = time.process_time_ns()
                for answer in answers:
                    client.stream.receive(answer, NOW)
                rest = client.frames()
                times.append((taken + time.process_time_ns() - start) / 1e9)
                assert frames, "the change reached nobody"
                assert not rest, "one answer was not enough"
                size = sum(map(len, frames))
            firsts.append(times[0])
            others.append(median(times[1:]))
        return median(firsts), median(others), size


def envoy_node() -> Any:
    from xds.streams.wire import delta_request

    request = envoy_api.parse("envoy.service.discovery.v3.DeltaDiscoveryRequest", {"node": NODE})
    node = delta_request(request.SerializeToString()).node
    assert node is not None
    return node


def mean(cost: tuple[float, float, int]) -> float:
    first, other, _ = cost
    return (first + (PROXIES - 1) * other) / PROXIES


def main() -> None:
    found: dict[tuple[str, int], tuple[float, float, int]] = {}
    for services in SIZES:
        fleet = Fleet(services, DELTA, PROXIES)
        gc.collect()
        gc.freeze()  # what it looks through grows with the mesh, whatever the engine does
        for what, change in (("one endpoint", fleet.endpoint), ("one virtual host", fleet.host)):
            found[what, services] = fleet.cost(change)
        gc.unfreeze()
        del fleet
    print(f"One change to {PROXIES} incremental proxies, from the new view to the ACK; us of CPU a proxy:")
    for what in ("one endpoint", "one virtual host"):
        base = mean(found[what, SIZES[0]])
        for services in SIZES:
            first, other, size = found[what, services]
            average = mean(found[what, services])
            print(
                f"  {what:17} of {services:6,} {average * 1e6:6.1f}  ({average / base:.2f}x; target {TARGET}x)"
                f"   the first {first * 1e6:5.0f}   each other {other * 1e6:5.1f}   {size:,} bytes"
            )
    table = Fleet(1_000, SOTW, 2)
    _, other, size = table.cost(table.host)
    small = found["one virtual host", 1_000][2]
    print(
        f"The same in the state of the world, 1,000 services: {other * 1e6:.1f} us, {size:,} bytes: "
        f"{size / small:.0f} times the bytes."
    )


if __name__ == "__main__":
    main()
