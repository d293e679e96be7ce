"""What a caller's dependencies are called: in Nelson's namespaces, and as the Host of a request."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mesh.caller import Caller, CallerHost
from xds.translate.naming import EGRESS, port_name, with_ports

DEFAULT_PORT: Final = "default"
"""Nelson's name of the port that a bare name means; each service has exactly one."""

_WORD: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class Lost(NamedTuple):
    """`loser` does not have a domain because `winner` has it."""

    domain: str
    loser: CallerHost
    winner: CallerHost


def levels(namespace: str) -> Iterator[str]:
    """The namespace, then its parents from the nearest on: `dev/a/b`, `dev/a`, `dev`."""
    while namespace:
        yield namespace
        namespace = namespace.rpartition("/")[0]


def nearest(namespace: str, known: Collection[str]) -> str | None:
    """The first of a namespace and its parents that is known."""
    return next((level for level in levels(namespace) if level in known), None)


def full_name(host: CallerHost) -> str:
    """The service with its namespace, innermost level first: `howdy.a.dev` for `howdy` of `dev/a`."""
    return ".".join((host.service, *reversed(host.namespace.split("/"))))


def is_main(host: CallerHost) -> bool:
    return host.port_name == DEFAULT_PORT


def host_name(host: CallerHost) -> str:
    """The name of its virtual host."""
    name = full_name(host)
    return f"{EGRESS}/{name if is_main(host) else port_name(name, host.port)}"


def is_sayable(name: str) -> bool:
    """Whether it can be (a part of) a domain. A `*` or a colon in one would take other services' requests."""
    return _WORD.fullmatch(name) is not None


def domains(
    caller: Caller, hosts: Sequence[CallerHost], viewer: str
) -> tuple[Mapping[CallerHost, tuple[str, ...]], tuple[Lost, ...]]:
    """The domains of each host for nodes in the namespace `viewer`, and those that two of them want.

    A full name wins over a bare one, and that over one with the caller's domain behind it; else the first has it.
    """
    bare = _visible(hosts, viewer)
    wishes = [(host, full_name(host)) for host in hosts] + [(host, host.service) for host in bare]
    if is_sayable(suffix := caller.domain.strip(".")):
        wishes += [(host, f"{name}.{suffix}") for host, name in wishes]
    owners: dict[str, CallerHost] = {}
    lost: dict[Lost, None] = {}
    for host, name in wishes:
        for domain in with_ports(name.lower(), bare=is_main(host), port=host.port):
            if (owner := owners.setdefault(domain, host)) is not host:
                lost[Lost(domain, host, owner)] = None
    found: dict[CallerHost, list[str]] = {host: [] for host in hosts}
    for domain, host in owners.items():
        found[host].append(domain)
    return {host: tuple(mine) for host, mine in found.items()}, tuple(lost)


def _visible(hosts: Iterable[CallerHost], viewer: str) -> list[CallerHost]:
    """The hosts that a bare name means: all ports of a service in the nearest namespace that has it."""
    homes: dict[str, set[str]] = {}
    for host in hosts:
        homes.setdefault(host.service, set()).add(host.namespace)
    chosen = {service: nearest(viewer, known) for service, known in homes.items()}
    return [host for host in hosts if chosen[host.service] == host.namespace]
