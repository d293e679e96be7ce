"""What the files that a node matches give it together.

Of two resources with one type and name, the one from the more special file wins (ids before metadata before clusters
before everybody), and then the one whose path comes first. Virtual hosts of one table share its domains in the same
order: the later one loses what an earlier one has.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from envoy_api import message_class
from xds.raw.resource_file import Key, ListenAddress, RawFile, RawResource
from xds.resources import types
from xds.resources.encoded import resource_of
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import ResourceSet


class Loss(NamedTuple):
    """A resource does not get its name, or one of the domains that it wants, as another file's resource has it."""

    file: RawFile
    key: Key
    winner: RawFile
    domain: str = ""


class HostsOf(NamedTuple):
    """The virtual hosts of one table that are resources of their own, by name, and the domains that they have."""

    hosts: Mapping[str, Resource]
    claims: frozenset[str]


def table_of(host: str) -> str:
    """The route table that a virtual host's name says it belongs to."""
    return host.rpartition("/")[0]


def in_order(files: Iterable[RawFile]) -> tuple[RawFile, ...]:
    """The files by precedence; files of equal rank stay in their order."""
    return tuple(sorted(files, key=lambda file: file.nodes.rank))


class Selection:
    """The outcome for all nodes that match exactly these files, given by precedence."""

    def __init__(self, files: tuple[RawFile, ...]) -> None:
        self.files = files
        self._taken: dict[Key, tuple[RawFile, RawResource]] = {}
        self.losses: list[Loss] = []
        for file in files:
            for key, raw in file.resources.items():
                if (holder := self._taken.setdefault(key, (file, raw)))[0] is not file:
                    self.losses.append(Loss(file, key, holder[0]))
        self._hosts = self._share_domains()

    @property
    def resources(self) -> Iterator[RawResource]:
        """What has its name, whatever became of its domains."""
        return (raw for _, raw in self._taken.values())

    @cached_property
    def sets(self) -> Mapping[str, ResourceSet]:
        """The resources by type; virtual hosts that belong to a table among them are in the table."""
        by_type: dict[str, list[Resource]] = {}
        for key, (_, raw) in self._taken.items():
            if key.type_url != types.VIRTUAL_HOST:
                by_type.setdefault(key.type_url, []).append(self._whole(raw))
        return MappingProxyType({url: ResourceSet.of(found) for url, found in by_type.items()})

    @cached_property
    def hosts(self) -> Mapping[str, HostsOf]:
        """The virtual hosts that belong to none of the tables here, by the name of their table."""
        return MappingProxyType(
            {
                table: HostsOf(hosts, frozenset[str]().union(*(host.claims for host in hosts.values())))
                for table, hosts in self._hosts.items()
                if hosts and not self._takes_in(table)
            }
        )

    @cached_property
    def addresses(self) -> tuple[ListenAddress, ...]:
        """Where the listeners listen."""
        return tuple(address for raw in self.resources for address in raw.addresses)

    @cached_property
    def overrules(self) -> frozenset[str]:
        """Types of which nothing generated is served."""
        return frozenset[str]().union(*(file.overrules for file in self.files))

    def _takes_in(self, table: str) -> bool:
        known = self._taken.get(Key(types.ROUTE, table))
        return known is not None and not known[1].apart

    def _whole(self, raw: RawResource) -> Resource:
        """A route table with the virtual hosts that were written apart from it."""
        resource = raw.resource
        more = self._hosts.get(resource.name)
        if not isinstance(resource, RouteTable) or raw.apart or not more:
            return resource
        hosts = (*resource.hosts, *more.values())
        return RouteTable(types.ROUTE, resource.name, resource.head, hosts, ttl=resource.ttl)

    def _share_domains(self) -> dict[str, dict[str, Resource]]:
        """The virtual hosts with the domains that they get, by table."""
        owners: dict[str, dict[str, RawFile]] = {}
        names: dict[str, RawFile] = {}
        for (url, name), (file, raw) in self._taken.items():
            if url == types.ROUTE and isinstance(raw.resource, RouteTable):
                owners[name] = {claim: file for host in raw.resource.hosts for claim in host.claims}
                names.update((host.name, file) for host in raw.resource.hosts)
        hosts: dict[str, dict[str, Resource]] = {}
        for key, (file, raw) in self._taken.items():
            if key.type_url != types.VIRTUAL_HOST:
                continue
            if (holder := names.get(key.name)) is not None:
                self.losses.append(Loss(file, key, holder))
                continue
            table = table_of(key.name)
            domains = owners.setdefault(table, {})
            lost = {claim: domains[claim] for claim in sorted(raw.resource.claims) if claim in domains}
            self.losses += [Loss(file, key, winner, domain) for domain, winner in lost.items()]
            left = without_domains(raw.resource, frozenset(lost))
            if left is not None:
                domains.update(dict.fromkeys(left.claims, file))
                hosts.setdefault(table, {})[key.name] = left
        return hosts


def without_domains(host: Resource, lost: frozenset[str]) -> Resource | None:
    """A virtual host without these (lower-case) domains; None when it has no other, for Envoy wants one."""
    if lost.isdisjoint(host.claims):
        return host
    message = message_class("envoy.config.route.v3.VirtualHost").FromString(host.body)
    left = [domain for domain in message.domains if domain.lower() not in lost]
    if not left:
        return None
    message.domains[:] = left
    return resource_of(message, host.ttl)
