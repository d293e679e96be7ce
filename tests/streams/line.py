"""A stream that is stepped through by hand, with the world it serves."""

from collections.abc import Iterable
from typing import Any

import pytest
from world import World

import envoy_api
from xds.resources import types
from xds.resources.snapshot import Snapshot
from xds.streams.events import Event
from xds.streams.shared import Shared
from xds.streams.status import SyncState
from xds.streams.stream import DELTA, SOTW, Server, Stream, Variant

CDS, EDS, RDS = types.CLUSTER, types.ENDPOINT, types.ROUTE
VARIANTS = pytest.mark.parametrize("variant", [SOTW, DELTA], ids=["sotw", "delta"])


class Line:
    """A stream and the world it serves; requests are dicts of proto fields, responses messages."""

    def __init__(self, variant: Variant, world: World, only_type: str | None = None) -> None:
        self.variant, self.world, self.now = variant, world, 100.0
        self.events: list[Event] = []
        self.view: Snapshot = world.snapshot()
        self.server = Server(lambda _: self.view, Shared("test"), on_event=self.events.append)
        self.stream = Stream(self.server, variant, only_type, "peer", self.now)
        self.said_node = False

    def say(self, type_url: str, **fields: Any) -> None:
        kind = "DiscoveryRequest" if self.variant is SOTW else "DeltaDiscoveryRequest"
        if not self.said_node:
            fields.setdefault("node", {"id": "node"})
            self.said_node = True
        request = envoy_api.parse(f"envoy.service.discovery.v3.{kind}", {"type_url": type_url, **fields})
        self.stream.receive(request.SerializeToString(), self.now)

    def ask(self, type_url: str, names: Iterable[str] = (), **fields: Any) -> None:
        key = "resource_names" if self.variant is SOTW else "resource_names_subscribe"
        self.say(type_url, **{key: list(names)}, **fields)

    def ack(self, response: Any, names: Iterable[str] = ()) -> None:
        if self.variant is SOTW:
            fields = {"version_info": response.version_info, "resource_names": list(names)}
        else:
            fields = {}
        self.say(response.type_url, response_nonce=response.nonce, **fields)

    def nack(self, response: Any, text: str, names: Iterable[str] = ()) -> None:
        names = {"resource_names": list(names)} if self.variant is SOTW else {}
        self.say(
            response.type_url, response_nonce=response.nonce, error_detail={"code": 13, "message": text}, **names
        )

    def publish(self) -> None:
        self.view = self.world.snapshot()
        self.stream.published(self.now)

    def hear(self) -> Any:
        """The next response, or None."""
        if (data := self.stream.next_frame(self.now)) is None:
            return None
        kind = "DiscoveryResponse" if self.variant is SOTW else "DeltaDiscoveryResponse"
        message: Any = envoy_api.message_class(f"envoy.service.discovery.v3.{kind}")()
        message.ParseFromString(data)
        return message

    def names(self, response: Any) -> list[str]:
        if self.variant is DELTA:
            return [entry.name for entry in response.resources]
        unpacked = [
            envoy_api.class_for_url(packed.type_url).FromString(packed.value) for packed in response.resources
        ]
        return [getattr(message, "name", "") or getattr(message, "cluster_name", "") for message in unpacked]

    def state(self, type_url: str) -> SyncState:
        status = self.stream.status()
        assert status is not None
        return next(kind.state for kind in status.types if kind.type_url == type_url)


def world(*clusters: str) -> World:
    return World(dict.fromkeys(clusters, 0), dict.fromkeys(clusters, 0), {"host": clusters} if clusters else {})
