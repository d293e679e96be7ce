"""Why is my instance missing? What every source has of a service, and what became of each instance."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import NamedTuple

from discovery.left_out import LeftOut, Reason
from discovery.merge import Account, Described, accounts
from discovery.weights import Shares
from mesh.service import ANYWHERE, NO_LABELS, Health, Labels, Locality, Service, ServiceName

_PLACE = re.compile(r"\[(?P<v6>[^]]+)\](?::(?P<v6_port>[0-9]{1,5}))?|(?P<host>[^:]+):(?P<port>[0-9]{1,5})")


class Source(NamedTuple):
    """What one source has, in the order of precedence; `held_since` is in Unix seconds, by service."""

    name: str
    services: Mapping[ServiceName, Service]
    left_out: Mapping[ServiceName, Sequence[LeftOut]]
    held_since: Mapping[ServiceName, float]


@dataclass(frozen=True, slots=True)
class Seen:
    """One instance as a source sees it, behind one port of a service.

    `service_port` is what callers dial (0: the instance is behind no port), `port` the instance's own. `weight` is
    the source's, `given` what proxies get (0: it is left out, and `reason` and `detail` say why). `detail` may also
    say why it is used. `held_since`: the source takes something of this service away, which waits for confirmation.
    """

    service: ServiceName
    source: str
    instance: str
    address: str
    port: int
    service_port: int = 0
    given: int = 0
    reason: Reason | None = None
    detail: str = ""
    health: Health | None = None
    weight: int = 0
    locality: Locality = ANYWHERE
    labels: Labels = NO_LABELS
    node: str = ""
    other_addresses: tuple[str, ...] = ()
    held_since: float | None = None

    @property
    def used(self) -> bool:
        return self.given > 0


def seen(name: ServiceName, sources: Sequence[Source], shares: Shares) -> tuple[Seen, ...]:
    """Every instance that any source has of the service, each once for every port that it is behind."""
    parts = [Described(source.name, source.services[name]) for source in sources if name in source.services]
    held = {source.name: source.held_since[name] for source in sources if name in source.held_since}
    out = [(source.name, one) for source in sources for one in source.left_out.get(name, ())]
    # What is held may be in force and left out already: it is told once, with what its source says now.
    now = {(source, one.address, one.port): one for source, one in out if source in held}
    told = []
    for account in accounts(parts, shares):
        one = _of_account(name, account, held.get(account.origin))
        now_out = now.get((one.source, one.address, one.port))
        if one.used and now_out is not None:
            one = replace(one, detail=f"its source says now that it is {now_out.reason}: {now_out.detail}")
            out = [entry for entry in out if entry != (one.source, now_out)]
        told.append(one)
    told += (
        Seen(name, source, one.instance, one.address, one.port, reason=one.reason, detail=one.detail)
        for source, one in out
    )
    return tuple(sorted(told, key=_order))


def _of_account(name: ServiceName, account: Account, held_since: float | None) -> Seen:
    endpoint, given = account.endpoint, account.given
    return Seen(
        name,
        account.origin,
        endpoint.instance,
        endpoint.address,
        endpoint.port,
        account.number,
        given.weight if given is not None else 0,
        account.reason,
        account.detail,
        endpoint.health,
        endpoint.weight,
        endpoint.locality,
        endpoint.labels,
        endpoint.node,
        endpoint.other_addresses,
        held_since,
    )


def _order(one: Seen) -> tuple[ServiceName, int, str, int, str, str, str]:
    return one.service, one.service_port, one.address, one.port, one.source, one.instance, one.reason or ""


class Matching(NamedTuple):
    """The services that have such an instance, and which instances of theirs are meant."""

    names: frozenset[ServiceName]
    holds: Callable[[Seen], bool]


def matching(text: str, sources: Sequence[Source]) -> Matching:
    """What the text means: an address (with a port, if one is said), an instance's name, its last word,
    `pod.namespace`, or a part that one alone has."""
    if not (text := text.strip()):
        return Matching(frozenset(), lambda _: False)
    host, port = _host_and_port(text)
    names = {
        name
        for name, _, addresses, own in _instances(sources)
        if host in addresses and port in (None, own or port)  # what has no such port is asked for by it, too
    }
    if names:
        return Matching(
            frozenset(names),
            lambda one: host in (one.address, *one.other_addresses) and port in (None, one.port or port),
        )
    found: dict[str, set[ServiceName]] = {}
    pod, _, namespace = text.partition(".")
    full = f"{namespace}/{pod}" if namespace else text
    for name, instance, _, _ in _instances(sources):
        if text in instance or full in instance:
            found.setdefault(instance, set()).add(name)
    wanted = {instance for instance in found if text in (instance, instance.partition(" ")[2])} or {
        instance
        for instance in found
        if re.split(r"[\s/]", instance)[-1] == text or instance.partition(" ")[2] == full
    }
    if not wanted and len(found) == 1:
        wanted = set(found)
    return Matching(
        frozenset(name for instance in wanted for name in found[instance]), lambda one: one.instance in wanted
    )


def instances_like(text: str, sources: Sequence[Source], most: int) -> tuple[str, ...]:
    """Names of instances that have the text in them."""
    found = {instance for _, instance, _, _ in _instances(sources) if text in instance}
    return tuple(sorted(found)[:most])


@dataclass(frozen=True, slots=True)
class Witness:
    """What all sources have at a moment: values that never change, so that a thread may look through them.

    `shares` are those of services that have their own, `default_shares` those of all others.
    """

    sources: tuple[Source, ...]
    shares: Mapping[ServiceName, Shares]
    default_shares: Shares

    def explain(self, text: str) -> tuple[Seen, ...]:
        """Every instance with this address (`10.0.0.1`, `10.0.0.1:8080`, `[fd00::1]:8080`) or name, used or not.

        A name is an instance's whole name, its last word (a pod's name without its namespace), or else a part that
        one instance alone has; then `similar` says which have it.
        """
        found = matching(text, self.sources)
        return tuple(one for name in sorted(found.names) for one in self.seen(name) if found.holds(one))

    def similar(self, text: str, most: int = 10) -> tuple[str, ...]:
        """Names of instances that have the text in them, of which `explain` took none because there are several."""
        return instances_like(text, self.sources, most)

    def seen(self, name: ServiceName) -> tuple[Seen, ...]:
        """Every instance of the service that any source has, used or not."""
        return seen(name, self.sources, self.shares_of(name))

    def shares_of(self, name: ServiceName) -> Shares:
        """Which source has which part of the service's requests; empty where all endpoints are alike."""
        return self.shares.get(name, self.default_shares)

    def names(self) -> frozenset[ServiceName]:
        """The services that any source has something of."""
        return frozenset(name for source in self.sources for name in (*source.services, *source.left_out))


def _instances(sources: Sequence[Source]) -> Iterator[tuple[ServiceName, str, tuple[str, ...], int]]:
    """(service, instance's name, addresses, port) of everything that sources have."""
    for source in sources:
        for name, service in source.services.items():
            for port in service.ports:
                for one in port.endpoints:
                    yield name, one.instance, (one.address, *one.other_addresses), one.port
        for name, left_out in source.left_out.items():
            for other in left_out:
                yield name, other.instance, (other.address,), other.port


def _host_and_port(text: str) -> tuple[str, int | None]:
    """An address as sources write it, and the port if there is one."""
    found = _PLACE.fullmatch(text)
    host = text if found is None else found["v6"] or found["host"]
    port = None if found is None else found["v6_port"] or found["port"]
    try:
        ip = ip_address(host)
        host = str(getattr(ip, "ipv4_mapped", None) or ip)
    except ValueError:
        host = host.lower()
    return host, None if port is None else int(port)
