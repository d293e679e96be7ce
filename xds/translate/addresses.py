"""Who gets an address when several TCP services want to be offered there. (Envoy could bind it for one only.)"""

from collections.abc import Iterator, Mapping
from typing import Final

from mesh.service import ServiceName
from xds.resources.resource import Resource
from xds.translate.finding import Code, Finding
from xds.translate.service_listener import ListenerPart
from xds.translate.settings import Address


class Addresses:
    """The TCP listeners by address. `taken` are the addresses that no service can have, and what has them."""

    def __init__(self, taken: Mapping[Address, str]) -> None:
        self._taken: Final = dict(taken)
        self._wishes: dict[Address, dict[ServiceName, ListenerPart]] = {}
        self._by_service: dict[ServiceName, ListenerPart] = {}

    def replace(self, service: ServiceName, part: ListenerPart | None) -> dict[str, Resource | None]:
        """Set a service's listener. Returns the listeners, by name, that are others now."""
        before = self._by_service.pop(service, None)
        if part is not None:
            self._by_service[service] = part
        changes: dict[str, Resource | None] = {before.resource.name: None} if before else {}
        for address in {known.address for known in (before, part) if known}:
            wishes = self._wishes.setdefault(address, {})
            changes.update((wish.resource.name, None) for wish in wishes.values())
            wishes.pop(service, None)
            if part is not None and part.address == address:
                wishes[service] = part
            if not wishes:
                del self._wishes[address]
        for address in {known.address for known in (before, part) if known}:
            if (winner := self._winner(address)) is not None:
                listener = self._wishes[address][winner].resource
                changes[listener.name] = listener
        return changes

    def _winner(self, address: Address) -> ServiceName | None:
        return None if address in self._taken else min(self._wishes.get(address, ()), default=None)

    def findings(self) -> Iterator[Finding]:
        """Who is not offered, and why."""
        for address, wishes in sorted(self._wishes.items()):
            winner = self._winner(address)
            holder = self._taken.get(address) or str(winner)
            for service in sorted(wishes.keys() - {winner}):
                reason = f"{address[0]}:{address[1]} is not its own: {holder} listens there"
                yield Finding(service, Code.LISTEN_CONFLICT, reason)
