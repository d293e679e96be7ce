"""One type's subscription on one stream, held against a model that remembers everything and decides nothing cleverly.

The model keeps every request and what each response carried, in plain tables. From the requests so far it reads what
the client is subscribed to, by the words of the specification; from the tables, what the client has. After each
exchange the client must have what it is subscribed to as it is now, and must not have been sent anything else.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from world import assignment, cluster

import envoy_api
from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY
from xds.resources.snapshot import Snapshot
from xds.streams.shared import Shared
from xds.streams.stream import DELTA, SOTW, Server, Stream, Variant

NAMES = st.sampled_from(["a", "b", "c", "*"])
MANY = st.lists(NAMES, max_size=3, unique=True)


class Model:
    """The client's requests, and the names it was sent with their versions ("" for the news that there is none)."""

    def __init__(self, variant: Variant, type_url: str) -> None:
        self.delta = variant is DELTA
        self.may_be_wildcard = type_url in (types.CLUSTER, types.LISTENER)
        self.requests: list[tuple[frozenset[str], frozenset[str]]] = []
        self.has: dict[str, str] = {}
        self.again: set[str] = set()
        """Names asked for anew since the last exchange: they may come again unchanged."""

    def ask(self, names: list[str], unsubscribe: list[str]) -> None:
        before = self.subscribed_names(), self.wildcard()
        known = {name for name in self.has if before[1] or name in before[0]}
        self.requests.append((frozenset(names), frozenset(unsubscribe)))
        if self.delta:
            again = set(names) - {"*"}
            if self.wildcard():
                again |= set(unsubscribe) & before[0]
        else:
            again = self.subscribed_names() - before[0]
        if self.wildcard() and not before[1]:
            again |= self.has.keys()
        self.again |= again
        forgotten = again if self.delta else again - known
        for name in [n for n in self.has if n in forgotten or not (self.wildcard() or n in self.subscribed_names())]:
            del self.has[name]

    def wildcard(self) -> bool:
        """Legacy: nothing but empty requests so far (incremental: an empty first one); explicit: by `*`."""
        if not self.requests:
            return False
        if not self.delta:
            nothing_named = not any(names for names, _ in self.requests)
            return "*" in self.requests[-1][0] or (self.may_be_wildcard and nothing_named)
        wild = self.may_be_wildcard and not self.requests[0][0]
        for names, unsubscribed in self.requests:
            wild = (wild or "*" in names) and "*" not in unsubscribed
        return wild

    def subscribed_names(self) -> set[str]:
        if not self.delta:
            return set(self.requests[-1][0]) - {"*"} if self.requests else set()
        names: set[str] = set()
        for added, unsubscribed in self.requests:
            names = (names | added) - unsubscribed
        return names - {"*"}


class OneType(RuleBasedStateMachine):
    variant = SOTW
    type_url = types.CLUSTER

    @initialize()
    def begin(self) -> None:
        self.target = EMPTY
        self.view = Snapshot({self.type_url: (EMPTY,)})
        self.stream = Stream(Server(lambda _: self.view, Shared("x")), self.variant, self.type_url, "p", 0.0)
        self.model = Model(self.variant, self.type_url)
        self.nonce = ""
        self.now = 0.0

    @rule(names=MANY, unsubscribe=MANY, known_nonce=st.booleans())
    def ask(self, names: list[str], unsubscribe: list[str], known_nonce: bool) -> None:
        if self.variant is SOTW:
            unsubscribe = []
        self.model.ask(names, unsubscribe)
        fields = (
            {"resource_names": names}
            if self.variant is SOTW
            else {"resource_names_subscribe": names, "resource_names_unsubscribe": unsubscribe}
        )
        self._say(fields, self.nonce if known_nonce else "of another time")

    @rule(name=st.sampled_from(["a", "b", "c"]), content=st.integers(0, 2))
    def publish(self, name: str, content: int) -> None:
        made: dict[str, Resource | None] = {name: self._resource(name, content)} if content else {name: None}
        self.target = self.target.with_changes(made)
        self.view = Snapshot({self.type_url: (self.target,)})
        self.stream.published(self.now)

    @rule()
    def exchange(self) -> None:
        """Everything that is due goes to the client, which takes and acknowledges it, and what lingers drains."""
        before = dict(self.model.has)
        carried: dict[str, str] = {}
        for _ in range(2):
            self.now += 100
            while (data := self.stream.next_frame(self.now)) is not None:
                response = self._read(data)
                carried.update(response)
                self._check_names(response)
                self._acknowledge()
        self._check_client(before, carried)

    def _resource(self, name: str, content: int) -> Resource:
        return cluster(name, content) if self.type_url == types.CLUSTER else assignment(name, content)

    def _say(self, fields: dict[str, Any], nonce: str) -> None:
        kind = "DiscoveryRequest" if self.variant is SOTW else "DeltaDiscoveryRequest"
        message = envoy_api.parse(
            f"envoy.service.discovery.v3.{kind}", {**fields, "node": {"id": "n"}, "response_nonce": nonce}
        )
        self.stream.receive(message.SerializeToString(), self.now)

    def _acknowledge(self) -> None:
        names = sorted(self.model.requests[-1][0]) if self.variant is SOTW else []
        self._say({"resource_names": names} if self.variant is SOTW else {}, self.nonce)

    def _read(self, data: bytes) -> dict[str, str]:
        kind = "DiscoveryResponse" if self.variant is SOTW else "DeltaDiscoveryResponse"
        response: Any = envoy_api.message_class(f"envoy.service.discovery.v3.{kind}")()
        response.ParseFromString(data)
        self.nonce = response.nonce
        packed = response.resources if self.variant is SOTW else [entry.resource for entry in response.resources]
        got: dict[str, str] = {}
        for one in packed:
            message: Any = envoy_api.class_for_url(one.type_url).FromString(one.value)
            name = message.name if self.type_url == types.CLUSTER else message.cluster_name
            got[name] = Resource(self.type_url, name, one.value).version
        if self.variant is DELTA:
            got.update(dict.fromkeys(response.removed_resources, ""))
        elif self.type_url == types.CLUSTER:
            gone = [name for name in self.model.has if name not in got]
            self.model.has.update(dict.fromkeys(gone, ""))
        self.model.has.update(got)
        return got

    def _check_names(self, response: dict[str, str]) -> None:
        strangers = response.keys() - self.model.subscribed_names()
        assert not strangers or self.model.wildcard()

    def _check_client(self, before: dict[str, str], carried: dict[str, str]) -> None:
        there = {resource.name: resource.version for resource in self.target}
        names = there.keys() if self.model.wildcard() else there.keys() & self.model.subscribed_names()
        assert {name: self.model.has.get(name) for name in names} == {name: there[name] for name in names}
        gone = {name: version for name, version in self.model.has.items() if name not in there}
        assert not any(self._is_something(name, version) for name, version in gone.items())
        if self.variant is DELTA or self.type_url != types.CLUSTER:
            unasked = carried.keys() - self.model.again
            assert not any(carried[name] and before.get(name) == carried[name] for name in unasked)
        self.model.again.clear()

    def _is_something(self, name: str, version: str) -> bool:
        """Neither removed nor an assignment without endpoints."""
        return version in {self._resource(name, content).version for content in (1, 2)}


def _machine(variant: Variant, type_url: str) -> Any:
    machine = type("Machine", (OneType,), {"variant": variant, "type_url": type_url})
    case = machine.TestCase
    case.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
    return case


TestSotwClusters = _machine(SOTW, types.CLUSTER)
TestSotwEndpoints = _machine(SOTW, types.ENDPOINT)
TestDeltaClusters = _machine(DELTA, types.CLUSTER)
TestDeltaEndpoints = _machine(DELTA, types.ENDPOINT)
