"""One datacenter: its catalog, and a watch for each service that is wanted."""

import asyncio
from collections.abc import Callable, Collection
from typing import Final, Protocol

from discovery.consul.blocking import Bucket, Worth
from discovery.consul.catalog import CatalogWatch
from discovery.consul.client import ConsulClient
from discovery.consul.gate import Gate
from discovery.consul.grading import Grader, Part
from discovery.consul.lanes import Lanes
from discovery.consul.naming import is_wanted
from discovery.consul.permissions import Permissions
from discovery.consul.roll import AFTER_RESET_S
from discovery.consul.settings import ConsulSettings
from discovery.consul.watch import Shared, Watch
from discovery.left_out import LeftOut, Reason
from mesh.service import ServiceName

LINGER_S: Final = 60.0
"""How long a service stays, without endpoints, after its last instance is gone: a restart of the only one is answered
by 503 meanwhile, which callers retry, and not by 404."""


class Listener(Protocol):
    """Who puts together what datacenters say."""

    def said(self, datacenter: "Datacenter", service: str, worth: Worth) -> None:
        """`datacenter.parts` of this service changed."""

    def turned(self, datacenter: "Datacenter") -> None:
        """Whether it is heard, and what is in the way, may have changed."""


class Datacenter:
    """`run` it as a task. `name` is empty for the agent's own where no other is asked for."""

    def __init__(
        self,
        name: str,
        settings: ConsulSettings,
        client: ConsulClient,
        lanes: Lanes,
        bucket: Bucket,
        namespace: str,
        listener: Listener,
        *,
        known: Callable[[], Collection[str]],
        clock: Callable[[], float],
        uniform: Callable[[float, float], float],
    ) -> None:
        """`known`: names of services that there were in an earlier life."""
        self.name = name
        self.watches: dict[str, Watch] = {}
        self._settings, self._namespace, self._listener, self._clock = settings, namespace, listener, clock
        params = {"dc": name} if name else {}
        gate = Gate(client, params, on_turn=self._turned, on_open=self._opened, clock=clock, uniform=uniform)
        self._shared = Shared(client, params, gate, lanes, bucket, Permissions(client, params), clock, uniform)
        self.grader = Grader(settings, namespace, name)
        self.catalog = CatalogWatch(
            settings,
            self._shared,
            known=lambda: {*self.watches, *known()},
            on_catalog=self._listed,
            on_reset=self.reset,
            on_trouble=self._turned,
            anonymous=lambda: client.anonymous,
        )
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._settled_at = 0.0
        self._in_trouble: set[str] = set()
        self._trouble = self._cause = ""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            self._group.create_task(self._shared.gate.run())
            self._group.create_task(self.catalog.run())

    @property
    def trouble(self) -> str:
        """What is in the way, the worst first; empty for nothing. While the gate finds out whether the agent is there
        at all, it is what it was: an agent that goes away is one trouble, not one for each question to it."""
        if not self.undecided:
            self._trouble, self._cause = self._found()
        return self._trouble

    @property
    def causes(self) -> tuple[str, ...]:
        """Why that is, without what it is in the way of: the same for all services that have one reason. First what
        `trouble` says, then what else failed while the agent was away."""
        if not self.trouble:
            return ()
        away = self._shared.gate.reason
        others = (self.catalog.trouble, *(self.watches[name].trouble for name in self._in_trouble)) if away else ()
        return (self._cause, *others)

    @property
    def undecided(self) -> bool:
        return self._shared.gate.undecided and not self._shared.gate.reason

    def _found(self) -> tuple[str, str]:
        if reason := self._shared.gate.reason:
            waiting = f"; {_services(len(self.watches))} until it is back" if self.watches else ""
            return self._named(f"{reason}{waiting}"), reason
        if reason := self.catalog.trouble:
            return self._named(reason), reason
        if not self._in_trouble:
            return "", ""
        service = min(self._in_trouble)
        more = f" (and {len(self._in_trouble) - 1} more services)" if len(self._in_trouble) > 1 else ""
        reason = self.watches[service].trouble
        return self._named(f"no answer about {service}{more}: {reason}"), reason

    @property
    def is_synced(self) -> bool:
        """The catalog was read, and every service in it was asked for; of any, one answered."""
        watches = [self.watches[name] for name in self.catalog.wanted if name in self.watches]
        tried = self.catalog.answered and all(watch.tried for watch in watches)
        return tried and (not watches or any(watch.answered for watch in watches))

    @property
    def is_complete(self) -> bool:
        """Every service in the catalog has answered."""
        return self.is_synced and all(watch.answered for watch in self.watches.values())

    @property
    def lists_something(self) -> bool:
        return bool(self.catalog.wanted) and not self.catalog.trouble

    @property
    def permissions(self) -> Permissions:
        return self._shared.permissions

    def settled_in_s(self) -> float:
        return max(0.0, self._settled_at - self._clock())

    def reset(self) -> None:
        """An index went back: what began anew may not know everything for a while."""
        if self.settled_in_s() == 0.0:
            self._settled_at = self._clock() + AFTER_RESET_S
            self.catalog.ask_anew()

    def unwanted(self) -> dict[ServiceName, Part]:
        """Services of the catalog that the tag rule leaves out, as far as anybody may ask why."""
        if not self._settings.tag:
            return {}
        why = f"no instance of it has a tag that begins with `{self._settings.tag}`; add one where it is registered"
        return {
            ServiceName(self._namespace, service): Part(
                left_out=(LeftOut(f"service {service}", "", 0, Reason.NOT_SELECTED, why),), exists=False
            )
            for service, tags in self.catalog.catalog.items()
            if not is_wanted(service, tags, self._settings) and service not in self.watches
        }

    def retire(self, service: str) -> bool:
        """Follow the service no more if nothing of it is left."""
        watch = self.watches.get(service)
        if watch is None or service in self.catalog.wanted or watch.roll.instances:
            return False
        del self.watches[service]
        self._in_trouble.discard(service)
        self._tasks.pop(service).cancel()
        return True

    def _listed(self) -> None:
        for service in sorted(self.catalog.wanted - self.watches.keys()):
            self._follow(service)
        self._turned()

    def _follow(self, service: str) -> None:
        assert self._group is not None
        watch = Watch(
            service,
            self._shared,
            self,
            expression=self._settings.filter,
            on_roll=self._rolled,
            on_trouble=self._troubled,
        )
        self.watches[service] = watch
        self._tasks[service] = self._group.create_task(watch.run())

    def _rolled(self, watch: Watch, worth: Worth) -> None:
        self._listener.said(self, watch.service, worth)

    def _troubled(self, watch: Watch) -> None:
        if watch.trouble:
            self._in_trouble.add(watch.service)
        else:
            self._in_trouble.discard(watch.service)
            for service in self._in_trouble:  # what helped it may have helped the others
                self.watches[service].hurry()
        self._turned()

    def token_turned(self) -> None:
        """Another token may read something else: whatever was asked with the one before is asked anew."""
        self._shared.gate.doubt(token=True)
        self._opened()

    def _opened(self) -> None:
        self._shared.permissions.forget()
        self.catalog.ask_anew()
        for watch in self.watches.values():
            watch.ask_anew()

    def _turned(self) -> None:
        self._listener.turned(self)

    def _named(self, reason: str) -> str:
        return f"datacenter {self.name}: {reason}" if self.name else reason


def _services(count: int) -> str:
    return f"{count} services wait" if count > 1 else "1 service waits"
