"""Virtual services' splits: held as endpoints are, and kept for the next life."""

import asyncio
import json
from collections.abc import Collection
from typing import Final

import msgspec

from discovery.kept import DELAY_S
from discovery.kubernetes.nelson import Virtual, routes_of
from discovery.registry import Evidence
from mesh.rule import Forward, ServiceRoutes
from mesh.service import ServiceName
from mesh.split import ServiceRef, Share, Split
from operator_files.store import LastGoodStore, StoreError

KIND: Final = "kubernetes-splits"
FORMAT: Final = 1


class _Kept(msgspec.Struct):
    format: int
    service: ServiceName
    port: int
    shares: list[tuple[ServiceName, str | int | None, int]]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Kept)


class Splits:
    """The routes of virtual services in force, and those that wait for a second answer in `held`.

    `warnings` tell what the store had and nobody could read; `store_error` why it could not be written.
    """

    def __init__(self, store: LastGoodStore | None) -> None:
        """Raises StoreError."""
        self.routes: dict[ServiceName, ServiceRoutes] = {}
        self.held: dict[ServiceName, ServiceRoutes | None] = {}
        self.warnings: tuple[str, ...] = ()
        self.store_error = ""
        self._store = store
        self._changed = asyncio.Event()
        self._kept: dict[str, str] = store.load(KIND) if store is not None else {}
        for key, text in self._kept.items():
            try:
                routes = _decoded(text)
            except ValueError as error:
                self.warnings = (*self.warnings, f"the store's entry {key} of {KIND} is left out: {error}")
            else:
                self.routes[routes.service] = routes

    def take(self, name: ServiceName, virtual: Virtual | None, evidence: Evidence, *, emptied: bool) -> bool:
        """What labels say of a virtual service now (None: nothing). Whether what is in force changed.

        An answer that nobody saw change takes no destination away. And a split that sends nothing anywhere is none:
        the last one stays for as long as Services say that they belong to it.
        """
        old, wanted = self.routes.get(name), virtual.routes if virtual is not None else None
        if virtual is not None and wanted is None:
            wanted = old
        believed = evidence is Evidence.LIVE or (evidence is Evidence.ASKED and name in self.held and not emptied)
        if not believed and _destinations(old) - _destinations(wanted):
            self.held[name] = wanted
            return False
        self.held.pop(name, None)
        return self._set(name, wanted)

    def confirm(self, names: Collection[ServiceName] | None) -> dict[ServiceName, ServiceRoutes | None]:
        """Lets held ones come true (None: all): what they are then."""
        chosen = {name: routes for name, routes in self.held.items() if names is None or name in names}
        for name, routes in chosen.items():
            del self.held[name]
            self._set(name, routes)
        return chosen

    async def run(self) -> None:
        """Writes what changed, until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(DELAY_S)
            await self.keep()

    async def keep(self) -> None:
        """Writes what is in force to the store, as far as it differs."""
        self._changed.clear()
        if self._store is None:
            return
        texts = {json.dumps(name): _encoded(routes) for name, routes in self.routes.items()}
        changes: dict[str, str | None] = {key: text for key, text in texts.items() if self._kept.get(key) != text}
        changes |= dict.fromkeys(self._kept.keys() - texts.keys())
        if not changes:
            return
        try:
            # A write that is cancelled goes on in its thread, and the store takes one after the other.
            await asyncio.to_thread(self._store.save, KIND, changes)
        except StoreError as error:
            self.store_error = str(error)
        else:
            self.store_error, self._kept = "", texts

    def _set(self, name: ServiceName, routes: ServiceRoutes | None) -> bool:
        if self.routes.get(name) == routes:
            return False
        self._changed.set()
        if routes is None:
            del self.routes[name]
        else:
            self.routes[name] = routes
        return True


def _split(routes: ServiceRoutes) -> Split:
    action = routes.rules[0].action
    assert isinstance(action, Forward)  # as `routes_of` makes them
    return action.split


def _destinations(routes: ServiceRoutes | None) -> frozenset[object]:
    return frozenset(share.to for share in _split(routes).shares) if routes is not None else frozenset()


def _encoded(routes: ServiceRoutes) -> str:
    shares = [(to.service, to.port, share) for to, share in _split(routes).shares if isinstance(to, ServiceRef)]
    port = routes.port if isinstance(routes.port, int) else 0
    return _encoder.encode(_Kept(FORMAT, routes.service, port, shares)).decode()


def _decoded(text: str) -> ServiceRoutes:
    try:
        kept = _decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it cannot be read ({error})") from error
    if kept.format != FORMAT:
        raise ValueError(f"it has format {kept.format}, and this version knows format {FORMAT}")
    shares = tuple(Share(ServiceRef(service, port), share) for service, port, share in kept.shares)
    return routes_of(kept.service, kept.port, Split(shares))
