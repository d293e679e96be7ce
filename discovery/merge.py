"""Several descriptions of one service, put together: from several files, or from several sources.

Every endpoint of every description is accounted for: proxies get it, or it is left out with a reason.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from discovery.left_out import Reason
from discovery.weights import Shares, weighed
from mesh.service import Endpoint, Port, Protocol, Service

UNNUMBERED: Final = 0
"""The number of a source's only port, where the source knows no port that callers dial (Consul, pods by label). It is
that of another source's main port, with its name and protocol, or else 80."""

DEFAULT_PORT: Final = 80
"""What callers dial where nobody says otherwise: the port that a bare HTTP URL means."""

NO_SHARES: Final[Shares] = MappingProxyType({})


class Described(NamedTuple):
    """A service as `origin` (a file, a source) describes it."""

    origin: str
    service: Service


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two origins contradict each other about a service; what `loser` says about it is left out.

    `whole_port`: about the port, so that all its endpoints are left out; else about single endpoints that both have,
    or what else goes by `winner`.
    """

    winner: str
    loser: str
    reason: str
    whole_port: bool = True


class Account(NamedTuple):
    """What became of one endpoint that `origin` has behind a port (`number`, of the service).

    `given` is what proxies get, with the weight they get; None: it is left out. `detail` says why.
    """

    origin: str
    number: int
    endpoint: Endpoint
    given: Endpoint | None
    reason: Reason | None = None
    detail: str = ""


class Merged(NamedTuple):
    """`accounts` are those of endpoints that are left out, or that are used for a reason worth telling."""

    service: Service
    conflicts: tuple[Conflict, ...] = ()
    accounts: tuple[Account, ...] = ()


def merged(parts: Sequence[Described], shares: Shares = NO_SHARES) -> Merged:
    """One service of all parts, which are in the order of their precedence and describe the same name.

    Ports go together by number; their endpoints are put together, each (address, port) once. A port whose name or
    protocol contradicts an earlier part is left out, and so are what a later part says differently about an endpoint.
    A part's empty port name contradicts nothing. With `shares`, requests are split between origins in that
    proportion, port by port; an origin whose share is 0 is left out where another has endpoints. ValueError without
    parts.
    """
    if not parts:
        raise ValueError("nothing describes the service")
    if len(parts) == 1 and all(port.number != UNNUMBERED for port in parts[0].service.ports):
        return Merged(parts[0].service)
    ports, conflicts, accounts = _joined(parts, shares)
    addresses = sorted({address for part in parts for address in part.service.addresses})
    service = Service(parts[0].service.name, ports, tuple(addresses))
    return Merged(service, conflicts, tuple(account for account in accounts if account.detail))


def accounts(parts: Sequence[Described], shares: Shares = NO_SHARES) -> tuple[Account, ...]:
    """What became of every endpoint of every part, exactly once for each."""
    return _joined(parts, shares)[2]


def _joined(
    parts: Sequence[Described], shares: Shares
) -> tuple[tuple[Port, ...], tuple[Conflict, ...], tuple[Account, ...]]:
    ports: dict[int, _PortUnderWay] = {}
    conflicts: list[Conflict] = []
    told: list[Account] = []
    for origin, port, heard in _numbered(parts):
        conflict = _add(ports, origin, port)
        if conflict is not None:
            conflicts.append(conflict)
            why = f"{conflict.winner}, which goes before {origin}, says otherwise: {conflict.reason}"
            told += (Account(origin, port.number, one, None, Reason.OTHER_SOURCE, why) for one in port.endpoints)
        elif heard is not None:
            winner = ports[port.number].origin
            reason = f"port {port.number} speaks {port.protocol}, not {heard}"
            conflicts.append(Conflict(winner, origin, reason, whole_port=False))
    done = []
    for number in sorted(ports):
        port, more, here = ports[number].settled(shares)
        done.append(port)
        conflicts += more
        told += here
    return tuple(done), tuple(conflicts), tuple(told)


def _numbered(parts: Iterable[Described]) -> Iterator[tuple[str, Port, Protocol | None]]:
    """Every port with its origin, and a number; and the protocol that its origin said where another's is taken."""
    main = next((port for part in parts if (port := _main_port(part.service)) is not None), None)
    for origin, service in parts:
        for port in service.ports:
            if port.number != UNNUMBERED:
                yield origin, port, None
                continue
            main = main or replace(port, number=DEFAULT_PORT)
            is_said = port.protocol not in (Protocol.HTTP1, main.protocol)  # http1 is what nobody said
            yield origin, replace(main, endpoints=port.endpoints), port.protocol if is_said else None


def _main_port(service: Service) -> Port | None:
    return replace(service, ports=tuple(port for port in service.ports if port.number != UNNUMBERED)).main_port


class _PortUnderWay:
    """A port while parts are added to it. `origin` is the first that has it."""

    def __init__(self, origin: str, port: Port) -> None:
        self.origin = origin
        self.shape = replace(port, endpoints=())
        self.offers: dict[str, list[Endpoint]] = {origin: list(port.endpoints)}

    def settled(self, shares: Shares) -> tuple[Port, list[Conflict], list[Account]]:
        """The port with the endpoints that proxies get, what was contradicted, and the account of every endpoint."""
        number = self.shape.number
        offers = {origin: endpoints for origin, endpoints in self.offers.items() if endpoints}
        weighty = {origin for origin in offers if shares.get(origin, 0) > 0}
        told: list[Account] = []
        conflicts: list[Conflict] = []
        alone = ""
        if shares and weighty:
            for origin in offers.keys() - weighty:
                why = f"the weight of {origin} is 0 for this service"
                told += (Account(origin, number, one, None, Reason.WEIGHT_ZERO, why) for one in offers.pop(origin))
        elif shares and offers:
            alone = "its source's weight is 0, and it is used because no source with a weight has an endpoint"
        kept = _each_once(number, offers, conflicts, told)
        given = weighed(kept, shares) if weighty else kept
        used = [
            Account(origin, number, one, as_given, detail=alone)
            for origin in given
            for one, as_given in zip(kept[origin], given[origin], strict=True)
        ]
        endpoints = sorted((account.given for account in used if account.given is not None), key=_place)
        return replace(self.shape, endpoints=tuple(endpoints)), conflicts, told + used


def _each_once(
    number: int, offers: Mapping[str, Sequence[Endpoint]], conflicts: list[Conflict], told: list[Account]
) -> dict[str, Sequence[Endpoint]]:
    """Of every origin the endpoints whose addresses no earlier origin has; what became of the others is `told`."""
    taken: dict[tuple[str, int], tuple[str, Endpoint]] = {}
    kept: dict[str, Sequence[Endpoint]] = {}
    for origin, endpoints in offers.items():
        mine: dict[tuple[str, int], Endpoint] = {}
        differing: dict[str, list[tuple[Endpoint, tuple[str, ...]]]] = {}
        for endpoint in endpoints:
            winner, there = next((taken[place] for place in _places(endpoint) if place in taken), ("", endpoint))
            if not winner and (twin := mine.get(_place(endpoint))) is not None:
                winner, there = origin, twin
            if not winner:
                mine[_place(endpoint)] = endpoint
                continue
            words = _differences(there, endpoint)
            if words and winner != origin:
                differing.setdefault(winner, []).append((endpoint, words))
            told.append(Account(origin, number, endpoint, None, *_second(winner, origin, there, words)))
        conflicts += (_differing(winner, origin, found) for winner, found in differing.items())
        kept[origin] = tuple(mine.values())
        taken |= {place: (origin, endpoint) for endpoint in mine.values() for place in _places(endpoint)}
    return kept


def _second(winner: str, origin: str, there: Endpoint, words: Collection[str]) -> tuple[Reason, str]:
    """Why an endpoint that was there already is left out."""
    named = f" ({there.instance})" if there.instance else ""
    if winner == origin:
        return Reason.DUPLICATE, f"another instance has its address and port{named}"
    if not words:
        return Reason.DUPLICATE, f"{winner}, which goes before {origin}, has the same endpoint{named}"
    return Reason.OTHER_SOURCE, f"{winner}, which goes before {origin}, has it{named} with {' and '.join(words)}"


def _differences(there: Endpoint, here: Endpoint) -> tuple[str, ...]:
    """In what two descriptions of an instance differ, as far as it matters to proxies."""
    pairs = (
        ("another weight", there.weight, here.weight),
        ("another health", there.health, here.health),
        ("another locality", there.locality, here.locality),
        ("other labels", there.labels, here.labels),
    )
    return tuple(words for words, one, other in pairs if one != other)


def _differing(winner: str, loser: str, found: Sequence[tuple[Endpoint, tuple[str, ...]]]) -> Conflict:
    first = min((endpoint for endpoint, _ in found), key=_place)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    words = dict.fromkeys(word for _, words in found for word in words)
    reason = f"the endpoint `{first.address}` port {first.port}{more} has {' and '.join(words)}"
    return Conflict(winner, loser, reason, whole_port=False)


def _add(ports: dict[int, _PortUnderWay], origin: str, port: Port) -> Conflict | None:
    if (there := ports.get(port.number)) is None:
        same_name = next((other for other in ports.values() if port.name and other.shape.name == port.name), None)
        if same_name is not None:
            reason = f"the port `{port.name}` is {same_name.shape.number}, not {port.number}"
            return Conflict(same_name.origin, origin, reason)
        ports[port.number] = _PortUnderWay(origin, port)
        return None
    if port.protocol is not there.shape.protocol:
        reason = f"port {port.number} speaks {there.shape.protocol}, not {port.protocol}"
        return Conflict(there.origin, origin, reason)
    if port.name and there.shape.name and port.name != there.shape.name:
        reason = f"port {port.number} is called `{there.shape.name}`, not `{port.name}`"
        return Conflict(there.origin, origin, reason)
    there.shape = replace(there.shape, name=there.shape.name or port.name)
    there.offers.setdefault(origin, []).extend(port.endpoints)
    return None


def _place(endpoint: Endpoint) -> tuple[str, int]:
    return endpoint.address, endpoint.port


def _places(endpoint: Endpoint) -> Iterator[tuple[str, int]]:
    """All addresses of the instance: a source may call it by one, and another source by the other."""
    yield endpoint.address, endpoint.port
    for other in endpoint.other_addresses:
        yield other, endpoint.port
