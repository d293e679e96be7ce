"""What resources in force lack, or take from generated ones: warnings, for either may be meant."""

from collections.abc import Iterable, Iterator, Set
from typing import Final

from operator_files.problem import Code, Problem, in_order
from xds.raw import codes
from xds.raw.conflicts import Places
from xds.raw.overlay import listener_addresses
from xds.raw.resource_file import Key, RawFile, RawResource
from xds.raw.selection import table_of
from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.snapshot import Snapshot

_WANTED: Final = {
    types.ENDPOINT: (codes.NO_ASSIGNMENT, "takes its endpoints from an assignment `{}`, and there is none"),
    types.ROUTE: (codes.NO_TABLE, "takes its routes from a table `{}`, and there is none"),
    types.SECRET: (codes.NO_TABLE, "takes a secret `{}`, and there is none"),
}


def findings(files: Iterable[RawFile], generated: Snapshot, known_clusters: Set[str]) -> tuple[Problem, ...]:
    """Of all files together beside what is generated, by path and position.

    `known_clusters` are those of the Envoys' bootstraps. Which nodes a file is for makes no difference here: what is
    missing for one node only is not found.
    """
    files = tuple(files)
    there = {key for file in files for key in file.resources}
    there.update(Key(url, resource.name) for url in generated.layers for resource in generated.all(url))
    clusters = {name for url, name in there if url == types.CLUSTER} | known_clusters
    taken = _Generated(generated)
    places = Places()
    found = []
    for file in files:
        for raw in file.resources.values():
            said = (*_missing(raw, there, clusters), *taken.lost_to(raw))
            found += [places.problem(file, raw, code, message, warning=True) for code, message in said]
    return in_order(found)


def _missing(raw: RawResource, there: Set[Key], clusters: Set[str]) -> Iterator[tuple[Code, str]]:
    name = raw.resource.name
    for key in sorted(raw.fetches - there):
        code, message = _WANTED[key.type_url]
        yield code, f"`{name}` {message.format(key.name)}"
    if raw.resource.type_url != types.CLUSTER and (unknown := sorted(raw.resource.references - clusters)):
        named = ", ".join(f"`{cluster}`" for cluster in unknown)
        yield codes.UNKNOWN_CLUSTER, f"`{name}` sends to {named}, which nobody serves"


class _Generated:
    """What is generated, as far as raw resources may take it."""

    def __init__(self, generated: Snapshot) -> None:
        self._generated = generated
        hosts: list[Resource] = list(generated.all(types.VIRTUAL_HOST))
        for table in generated.all(types.ROUTE):
            hosts += table.hosts if isinstance(table, RouteTable) else ()
        self._domains = {(table_of(host.name), claim): host.name for host in hosts for claim in host.claims}
        self._hosts = {host.name for host in hosts}

    def lost_to(self, raw: RawResource) -> Iterator[tuple[Code, str]]:
        """What generated resources lose to this one."""
        url, name = raw.key
        kind = url.rpartition(".")[2]
        if self._generated.get(url, name) is not None or (url == types.VIRTUAL_HOST and name in self._hosts):
            yield codes.TAKES, f"`{name}` is served instead of the generated {kind} of that name"
        for listener in self._generated.all(types.LISTENER) if raw.addresses else ():
            if listener.name != name and _overlap(listener, raw):
                yield codes.TAKES, f"`{name}` listens where the generated listener `{listener.name}` would"
        if url != types.VIRTUAL_HOST:
            return
        for domain in sorted(raw.resource.claims):
            if (loser := self._domains.get((table_of(name), domain), name)) != name:
                yield codes.TAKES, f"`{name}` has the domain `{domain}`, which the generated `{loser}` goes without"


def _overlap(listener: Resource, raw: RawResource) -> bool:
    theirs = listener_addresses(listener.body)
    return any(mine.overlaps(other) for mine in raw.addresses for other in theirs)
