"""Services from Consul as a source of the registry."""

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from discovery.consul.blocking import Bucket, Worth
from discovery.consul.book import Book, Origin, by_datacenter
from discovery.consul.client import ConsulClient
from discovery.consul.datacenter import LINGER_S, Datacenter
from discovery.consul.grading import Part
from discovery.consul.indexes import KeptIndexes
from discovery.consul.lanes import Lanes
from discovery.consul.naming import namespace_of
from discovery.consul.notes import listed, notes
from discovery.consul.publishing import Publisher
from discovery.consul.question import rest
from discovery.consul.roll import AFTER_RESET_S, ASK_AGAIN_S
from discovery.consul.second_look import hidden_of, look_again
from discovery.consul.settings import ConsulSettings
from discovery.consul.watch import CANNOT_CONFIRM_S
from discovery.kept import KeptServices
from discovery.registry import Evidence, Feed
from mesh.service import ServiceName
from operator_files.follow import Freshness
from operator_files.problem import Problem
from operator_files.standing import Standing
from operator_files.store import LastGoodStore

KIND: Final = "consul-services"
_ALL_BURST: Final = 2_000.0
_ALL_PER_S: Final = 100.0
"""What all questions together are asked at: at once after a start, and then no agent needs to answer more a second,
whatever its indexes do."""
_SPARE: Final = 5
"""Connections for what is no service's own question: the gate, permissions, and services that are asked in turn."""
_NOTES_S: Final = 0.2
"""Notes are made of everything there is, so changes are gathered."""
_CAUSES: Final = 50
"""So many different ones are told of until all is well again."""
_TAG_RULE: Final = "\0tag rule"
"""The origin of what the catalog says about services that are not wanted; no service is called so."""


class ConsulSource:
    """Follows Consul and feeds the registry; `run` it as a task. Made on the event loop.

    From the start on the registry has what the store kept; what Consul lacks when it is first asked stays until it
    was asked for once more, or an operator confirms it.
    """

    def __init__(
        self,
        settings: ConsulSettings,
        feed: Feed,
        *,
        store: LastGoodStore | None,
        now: Callable[[], float],
        on_error: Callable[[str], None],
        on_notes: Callable[[], None] = lambda: None,
        default_namespace: str = "default",
        clock: Callable[[], float] | None = None,
        uniform: Callable[[float, float], float] = random.uniform,
        client: ConsulClient | None = None,
    ) -> None:
        """`now` in Unix seconds; `clock` never goes back. `on_error` is called with the reason when Consul, or a part
        of it, cannot be heard; `on_notes` when `notes` are others. Raises StoreError."""
        loop = asyncio.get_running_loop()
        clock = clock or loop.time
        self._settings, self._feed, self._on_error, self._on_notes = settings, feed, on_error, on_notes
        self._client = client or ConsulClient(settings)
        names = settings.datacenters or ("",)
        self._lanes = Lanes(max(1, settings.max_connections - _SPARE - len(names)), clock)
        self._kept, self._indexes = KeptServices(store, KIND), KeptIndexes(store)
        bucket = Bucket(_ALL_BURST, _ALL_PER_S)
        stored = self._kept.load()
        self._book = Book(by_datacenter(stored, names))
        self._datacenters = {
            name: Datacenter(
                name,
                settings,
                self._client,
                self._lanes,
                bucket,
                namespace_of(settings, default_namespace),
                self,
                known=lambda: [service.name for service in feed.services],
                clock=clock,
                uniform=uniform,
            )
            for name in names
        }
        self._publisher = Publisher(feed, self._book, stored, self._kept.changed)
        self._begun: set[str] = set()
        self._doubt = self._denied = ""
        self._told: set[str] = set()
        self._token_turned = asyncio.Event()
        self._notes: tuple[str, ...] = ()
        self._noting: asyncio.TimerHandle | None = None
        self._lingering: dict[tuple[Origin, ServiceName], asyncio.TimerHandle] = {}
        self._doubting: dict[str, asyncio.TimerHandle] = {}
        feed.publish(stored, Evidence.STORED, good_at=self._kept.good_at)

    @property
    def name(self) -> str:
        return self._feed.name

    @property
    def place(self) -> str:
        return self._settings.url

    @property
    def freshness(self) -> Freshness:
        """When Consul was last heard, and what is in the way."""
        status = self._feed.status
        return Freshness(
            status.synced_at,
            status.stale_since,
            status.error,
            status.stored,
            self._kept.store_error,
            self._kept.good_at,
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """None: instances have no lines. Each that is left out has its reason with the registry."""
        return ()

    @property
    def held_files(self) -> tuple[str, ...]:
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is no error, and an operator should know."""
        return (*self._kept.warnings, *self._notes)

    @property
    def requests(self) -> int:
        """How many questions Consul was asked since the start."""
        return self._client.requests

    def standings(self, paths: Collection[str]) -> Mapping[str, Standing]:
        return {}

    async def run(self) -> None:
        """Follows Consul until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._kept.run(self._feed))
                tasks.create_task(self._look_again())
                tasks.create_task(self._indexes.run(self._indexes_now))
                tasks.create_task(self._follow_token())
                for datacenter in self._datacenters.values():
                    tasks.create_task(datacenter.run())
        finally:
            timers = (*self._lingering.values(), *self._doubting.values(), *filter(None, (self._noting,)))
            for timer in timers:
                timer.cancel()
            await self._client.close()

    async def keep(self) -> None:
        """Write to the store what is in force now."""
        await self._kept.keep(self._feed)
        await self._indexes.keep(self._indexes_now())

    async def confirm(self, names: Collection[ServiceName] | None = None) -> frozenset[ServiceName]:
        """Lets held removals of these services and of their instances come true (None: all). The names held.

        LookupError where all are meant and the token may not read some: those have to be named.
        """
        if names is None:
            await self._check_rights()
        missing = self._missing() if names is None else self._missing() & frozenset(names)
        confirmed = self._feed.confirm(names) | self._believe(missing)
        for datacenter in self._datacenters.values():
            for service, watch in datacenter.watches.items():
                about = frozenset(self._book.said_by(Origin(datacenter.name, service)))
                if watch.roll.missing and (names is None or about & frozenset(names)):
                    watch.let_go()
                    self._say(datacenter, service, Worth.LIVE)
                    confirmed |= about
        self._publisher.believe(confirmed)
        self._tell()
        await self._kept.keep(self._feed)
        return confirmed

    async def _check_rights(self) -> None:
        held = set(self._feed.held) | self._missing()
        for one in self._datacenters.values():
            for service, watch in one.watches.items():
                if watch.roll.missing:
                    held |= self._book.said_by(Origin(one.name, service)).keys()
        services = {name: self._feed.services[name] for name in held if name in self._feed.services}
        if (hidden := await hidden_of(self._datacenters.values(), services)).names:
            raise LookupError(
                f"nothing was removed: {hidden.why}; until then nobody knows what is gone of {listed(hidden.names)}. "
                f"To remove one all the same, name it: `swashplate confirm {self.name} --only NAME`"
            )

    def said(self, datacenter: Datacenter, service: str, worth: Worth) -> None:
        """A datacenter's watch has another roll."""
        self._say(datacenter, service, worth)
        self.turned(datacenter)

    def turned(self, datacenter: Datacenter) -> None:
        """Whether a datacenter is heard, or what it lists, may have changed."""
        if datacenter.name not in self._begun and datacenter.is_synced:
            self._begin(datacenter)
        elif datacenter.name in self._begun:
            self._publisher.publish(self._book.say(Origin(datacenter.name, _TAG_RULE), datacenter.unwanted()))
            if self._book.stored.get(datacenter.name) and datacenter.is_complete:
                self._forget_stored(datacenter, self._book.stored[datacenter.name])
        for service in tuple(datacenter.watches.keys() - datacenter.catalog.wanted):
            datacenter.retire(service)
        self._tell()

    def _begin(self, datacenter: Datacenter) -> None:
        """The first time that all services of a datacenter were asked for: what it said counts from now on."""
        self._begun.add(datacenter.name)
        if self._indexes.of(datacenter.name) > datacenter.catalog.index:
            datacenter.reset()
            self._doubt_for(datacenter, AFTER_RESET_S)
        self._book.say(Origin(datacenter.name, _TAG_RULE), datacenter.unwanted())
        said = self._book.names_in(datacenter.name)
        stored = frozenset(self._book.stored.get(datacenter.name, ()))
        # Where a service did not answer, what it was called in the mesh is not known.
        told = stored if datacenter.is_complete else stored & said
        self._book.forget_stored(datacenter.name, told, doubt=datacenter.name in self._doubting)
        self._publisher.publish(said | stored)

    def _forget_stored(self, datacenter: Datacenter, names: Iterable[ServiceName]) -> None:
        names = tuple(names)
        self._book.forget_stored(datacenter.name, names, doubt=datacenter.name in self._doubting)
        self._publisher.publish(names)

    def _doubt_for(self, datacenter: Datacenter, seconds: float) -> None:
        """What Consul, which began anew meanwhile, lacks of an earlier life may still come."""
        loop = asyncio.get_running_loop()
        self._doubting[datacenter.name] = loop.call_later(seconds, self._doubted_enough, datacenter)

    def _doubted_enough(self, datacenter: Datacenter) -> None:
        if datacenter.trouble or not (datacenter.is_complete and datacenter.lists_something):
            self._doubt_for(datacenter, CANNOT_CONFIRM_S)
            return
        del self._doubting[datacenter.name]
        self._believe(tuple(self._book.doubted.get(datacenter.name, ())), datacenter.name)
        self._tell()

    def _believe(self, names: Collection[ServiceName], datacenter: str | None = None) -> frozenset[ServiceName]:
        """What no answer has of these is gone."""
        self._book.believe(names, datacenter)
        self._publisher.publish(names)
        return frozenset(names)

    def _missing(self) -> frozenset[ServiceName]:
        """Services that have endpoints of an earlier life in force that no answer has."""
        doubted = {name for services in self._book.doubted.values() for name in services}
        return frozenset(name for name in doubted if self._book.missing(name))

    def _say(self, datacenter: Datacenter, service: str, worth: Worth) -> None:
        origin, roll = Origin(datacenter.name, service), datacenter.watches[service].roll
        in_force = dict(datacenter.grader.parts(service, roll.instances))
        for name, part in self._book.said_by(origin).items():
            now = in_force.get(name, Part(exists=False))
            if now.exists:
                self._stay(origin, name)
            elif part.exists:
                in_force[name] = replace(now, exists=True)
                self._linger(origin, name)
        wanted = datacenter.grader.parts(service, roll.present.values()) if roll.missing else None
        names = self._book.say(origin, in_force, wanted)
        if datacenter.name in self._begun:
            self._publisher.publish(names, live=worth is Worth.LIVE)

    def _linger(self, origin: Origin, name: ServiceName) -> None:
        if (origin, name) not in self._lingering:
            loop = asyncio.get_running_loop()
            self._lingering[origin, name] = loop.call_later(LINGER_S, self._end, origin, name)

    def _stay(self, origin: Origin, name: ServiceName) -> None:
        if (timer := self._lingering.pop((origin, name), None)) is not None:
            timer.cancel()

    def _end(self, origin: Origin, name: ServiceName) -> None:
        self._lingering.pop((origin, name), None)
        rest = dict(self._book.said_by(origin))
        rest[name] = replace(rest[name], exists=False)
        if not rest[name].left_out:
            del rest[name]
        self._publisher.publish(self._book.say(origin, rest), live=True)

    async def _follow_token(self) -> None:
        while True:
            await self._client.token_turned()
            for datacenter in self._datacenters.values():
                datacenter.token_turned()
            self._token_turned.set()

    async def _look_again(self) -> None:
        """Asks once more for services of an earlier life that are missing."""
        wait = ASK_AGAIN_S
        while True:
            await self._publisher.in_doubt()
            await rest(self._token_turned, wait)
            if self._token_turned.is_set():  # answers with the new one come first
                self._token_turned.clear()
                await asyncio.sleep(ASK_AGAIN_S)
            doubted = self._publisher.doubted
            found = await look_again(self._client, self._datacenters.values(), doubted)
            self._publisher.confirm(found.gone)
            self._doubt, self._denied = found.why, found.denied
            self._tell()
            wait = ASK_AGAIN_S if found.gone or not doubted else min(wait * 2, 60.0)

    def _tell(self) -> None:
        found = [one for one in self._datacenters.values() if one.trouble]
        reason, causes = (found[0].trouble, found[0].causes) if found else ("", ())
        if not reason and self._denied and (doubted := self._publisher.doubted):
            reason = f"{self._denied}; until then nobody knows what is gone of {listed(doubted)}, which serve on"
            causes = (self._denied,)
        if reason:
            self._feed.failed(reason)
        elif not any(one.undecided for one in self._datacenters.values()):
            self._told.clear()
            if self._begun == self._datacenters.keys():
                self._feed.synced()
        # Once for each cause, however many services turn out to have it.
        if reason and causes[0] not in self._told and len(self._told) < _CAUSES:
            self._on_error(reason)
        self._told.update(causes)
        if self._noting is None:
            self._noting = asyncio.get_running_loop().call_later(_NOTES_S, self._note)

    def _note(self) -> None:
        self._noting = None
        now = notes(
            self._settings, self._client, self._lanes, self._datacenters.values(), self._publisher.disagreements
        )
        if (doubted := len(self._publisher.doubted)) and self._doubt and not self._denied:
            now = (*now, f"{doubted} services of an earlier life are held, since Consul lacks them: {self._doubt}")
        if missing := self._missing():
            count = sum(len(self._book.missing(name)) for name in missing)
            why = "serve on, since Consul's index went back and they may come again"
            now = (*now, f"{count} instances of an earlier life {why}: of {listed(missing)}")
        if now != self._notes:
            self._notes = now
            self._on_notes()

    def _indexes_now(self) -> dict[str, int]:
        return {name: one.catalog.index for name, one in self._datacenters.items() if one.catalog.answered}
