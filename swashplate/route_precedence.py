"""One origin's routes for each service, where several describe it: files, keys in Consul, what discovery derives."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mesh.mesh import Routes
from mesh.rule import ServiceRoutes
from mesh.service import ServiceName
from routes.source import Changes


class Hidden(NamedTuple):
    """What `loser` says about the routes of a service is not in force, because `winner` speaks of it too."""

    service: ServiceName
    winner: str
    loser: str


class RoutePrecedence:
    """`origins` are in the order of their precedence. Routes of which no good version is known go last:
    somebody's good ones are better than an error for all."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._said: dict[str, dict[ServiceName, Routes]] = {origin: {} for origin in origins}
        self._hidden: dict[ServiceName, tuple[Hidden, ...]] = {}

    def changed(self, origin: str, changes: Changes) -> Mapping[ServiceName, Routes | None]:
        """Notes what `origin` says now; what is in force of these services then."""
        said = self._said[origin]
        for name, routes in changes.items():
            if routes is None:
                said.pop(name, None)
            else:
                said[name] = routes
        return {name: self._chosen(name) for name in sorted(changes)}

    @property
    def hidden(self) -> Iterator[Hidden]:
        """By service."""
        for name in sorted(self._hidden):
            yield from self._hidden[name]

    def _chosen(self, name: ServiceName) -> Routes | None:
        offers = [(origin, said[name]) for origin, said in self._said.items() if name in said]
        offers.sort(key=lambda offer: not isinstance(offer[1], ServiceRoutes))
        if len(offers) > 1:
            winner = _said(*offers[0])
            self._hidden[name] = tuple(Hidden(name, winner, _said(*offer)) for offer in offers[1:])
        else:
            self._hidden.pop(name, None)
        return offers[0][1] if offers else None


def _said(origin: str, routes: Routes) -> str:
    return f"{routes.source} ({origin})" if routes.source else origin
