"""What an operator should know about Consul that is no error."""

from collections.abc import Collection, Iterable, Iterator

from discovery.consul.client import ConsulClient
from discovery.consul.datacenter import Datacenter
from discovery.consul.lanes import Lanes
from discovery.consul.settings import ConsulSettings

_NAMED = 3


def notes(
    settings: ConsulSettings,
    client: ConsulClient,
    lanes: Lanes,
    datacenters: Iterable[Datacenter],
    disagreements: Iterable[str],
) -> tuple[str, ...]:
    """Sentences for status."""
    return tuple(_notes(settings, client, lanes, list(datacenters), disagreements))


def _notes(
    settings: ConsulSettings,
    client: ConsulClient,
    lanes: Lanes,
    datacenters: list[Datacenter],
    disagreements: Iterable[str],
) -> Iterator[str]:
    yield from client.complaints
    if lanes.without:
        yield (
            f"{lanes.without} services are asked in turn, each about every {max(lanes.round_s, 1):.0f} s, because "
            f"{_why_in_turn(settings, lanes)}"
        )
    for one in datacenters:
        where = f" in {one.name}" if one.name else ""
        if one.catalog.answered and not one.catalog.wanted and not one.catalog.trouble:
            rule = f" with a tag that begins with `{settings.tag}`" if settings.tag else ""
            yield f"Consul's catalog{where} can be read and has no service{rule} but those of its own"
        yield from _hidden(one, where)
        missing = sorted(watch.service for watch in one.watches.values() if watch.roll.missing and not watch.trouble)
        if missing:
            count = sum(len(one.watches[service].roll.missing) for service in missing)
            yield (
                f"{count} instances{where} are not in Consul's last answers for no reason that was seen, and serve "
                f"on: of {listed(missing)}"
            )
        if spaced := sorted(_spaced(one)):
            yield f"tags with spaces around them{where}, which are read without: {listed(spaced)}"
    said = sorted(disagreements)
    yield from said[:_NAMED]
    if len(said) > _NAMED:
        yield f"{len(said) - _NAMED} more services whose instances do not agree about their protocol"


def _hidden(one: Datacenter, where: str) -> Iterator[str]:
    if one.catalog.partial:
        yield (
            f"Consul has services{where} that the token may not read; "
            'for all of them give it `service_prefix "" read`'
        )
    if partial := [watch.service for watch in one.watches.values() if watch.partial]:
        yield (
            f"the token may not read all instances{where} of {listed(partial)}; "
            'for all of them give it `node_prefix "" read`'
        )


def _why_in_turn(settings: ConsulSettings, lanes: Lanes) -> str:
    if lanes.given_up:
        return "the agent refuses more connections from this address; raise its `http_max_conns_per_client`"
    return (
        f"at most {settings.max_connections} connections are used; allow more here, and with the agent's "
        "`http_max_conns_per_client`"
    )


def _spaced(datacenter: Datacenter) -> Iterator[str]:
    for name in datacenter.catalog.wanted:
        for tag in datacenter.catalog.catalog.get(name, ()):
            if tag != tag.strip():
                yield f"`{tag}` of {name}"


def listed(names: Collection[object]) -> str:
    """The first few, and how many more."""
    names = sorted(map(str, names))
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
