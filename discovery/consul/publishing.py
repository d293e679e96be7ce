"""Which evidence what the book says is published with."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

from discovery.consul.book import Book, Value
from discovery.guard import serves
from discovery.left_out import LeftOut
from discovery.registry import Evidence, Feed
from mesh.service import Service, ServiceName


class Publisher:
    """Feeds the registry from the book.

    What an earlier life left is *doubted* while Consul has none of its instances, used or not: nobody saw them go.
    """

    def __init__(
        self,
        feed: Feed,
        book: Book,
        stored: Mapping[ServiceName, Service],
        on_published: Callable[[Iterable[ServiceName]], None],
    ) -> None:
        self._feed, self._book, self._on_published = feed, book, on_published
        self._unsure = {name: _instances(service) for name, service in stored.items()}
        self._disagreements: dict[ServiceName, str] = {}
        self._in_doubt = asyncio.Event()

    @property
    def doubted(self) -> Mapping[ServiceName, Service]:
        """What of an earlier life is held."""
        held = self._feed.held.keys() & self._unsure.keys()
        return MappingProxyType({name: self._feed.services[name] for name in held if name in self._feed.services})

    @property
    def disagreements(self) -> Collection[str]:
        """Of services whose instances contradict each other."""
        return self._disagreements.values()

    async def in_doubt(self) -> None:
        """Until something is doubted."""
        await self._in_doubt.wait()

    def publish(self, names: Iterable[ServiceName], *, live: bool = False) -> None:
        """What the book says about these. `live`: a change of their own instances was seen."""
        changes: dict[Evidence, dict[ServiceName, Service | None]] = {}
        left_out: dict[ServiceName, tuple[LeftOut, ...]] = {}
        names = sorted(names)
        for name in names:
            value = self._book.value(name)
            left_out[name] = value.left_out
            if value.disagreement:
                self._disagreements[name] = value.disagreement
            else:
                self._disagreements.pop(name, None)
            for evidence, service in self._evidence(name, value, live):
                changes.setdefault(evidence, {})[name] = service
        # What is in force first: a removal without evidence is held against that.
        for evidence in (Evidence.LIVE, Evidence.ASKED, Evidence.FIRST):
            if told := changes.get(evidence):
                self._feed.publish(told, evidence, {name: left_out[name] for name in told})
        self._settle(names)
        self._on_published(names)

    def confirm(self, names: Collection[ServiceName]) -> None:
        """These were asked for once more, and are gone."""
        if names:
            values = {name: self._book.value(name) for name in names}
            self._feed.publish(
                {name: value.in_force for name, value in values.items()},
                Evidence.ASKED,
                {name: value.left_out for name, value in values.items()},
            )
            self._settle(names)
            self._on_published(names)

    def believe(self, names: Iterable[ServiceName]) -> None:
        """An operator said that what is missing of these is gone."""
        for name in names:
            self._unsure.pop(name, None)
        self._settle(())
        self._on_published(names)

    def _evidence(self, name: ServiceName, value: Value, live: bool) -> Iterable[tuple[Evidence, Service | None]]:
        if value.in_force != value.wanted and not serves(value.wanted):
            if self._feed.services.get(name) != value.in_force:
                yield Evidence.LIVE, value.in_force
            yield Evidence.FIRST, value.wanted
        elif not self._unsure.get(name, frozenset()) <= value.seen:
            yield Evidence.FIRST, value.in_force
        elif name in self._feed.held and not live and name not in self._unsure:
            # The watch asked again before it let go of what was missing.
            yield Evidence.ASKED, value.in_force
        else:
            yield Evidence.LIVE, value.in_force

    def _settle(self, names: Iterable[ServiceName]) -> None:
        for name in names:
            if name not in self._feed.held and not self._book.remembers(name):
                self._unsure.pop(name, None)
        if self._unsure.keys() & self._feed.held.keys():
            self._in_doubt.set()
        else:
            self._in_doubt.clear()


def _instances(service: Service) -> frozenset[str]:
    return frozenset(endpoint.instance for port in service.ports for endpoint in port.endpoints)
