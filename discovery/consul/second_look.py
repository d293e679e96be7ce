"""Services of an earlier life that Consul did not list when we came back: whether they are really gone.

Nobody watched while they went, and the catalog may be that of a server that began anew, or of a token that may read
less. So each is asked for by name some time later.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import quote

from discovery.consul.client import UnreachableError
from discovery.consul.datacenter import Datacenter
from discovery.consul.objects import MisreadError, instances_in
from discovery.consul.question import Asks
from mesh.service import Endpoint, Service, ServiceName

_ROTOR_NAME = "consul:service"


class Found(NamedTuple):
    """`gone`: no datacenter has any of the kept instances of these. `why`: what keeps the others from being told.
    `denied`: the same, where it is that Consul does not let us read."""

    gone: frozenset[ServiceName] = frozenset()
    why: str = ""
    denied: str = ""


class Hidden(NamedTuple):
    """Services of which it cannot be known whether they are gone, and why."""

    names: frozenset[ServiceName] = frozenset()
    why: str = ""


async def look_again(client: Asks, datacenters: Collection[Datacenter], kept: Mapping[ServiceName, Service]) -> Found:
    """Asks for each of these by name."""
    if not all(one.is_complete for one in datacenters):
        return Found(why="not every service has answered yet")
    if any(one.settled_in_s() for one in datacenters):
        return Found(why="Consul's index went back, so it may not know everything yet")
    if not all(one.lists_something for one in datacenters):
        return Found(why="the catalog has nothing at all any more; confirm the removal if that is right")
    hidden = await hidden_of(datacenters, kept)
    gone, why = set(), hidden.why
    for name, service in sorted(kept.items()):
        if name in hidden.names:
            continue
        reasons = [await _obstacle(client, datacenter, service) for datacenter in datacenters]
        if any(reasons):
            why = why or next(filter(None, reasons))
        else:
            gone.add(name)
    return Found(frozenset(gone), why, hidden.why)


async def hidden_of(datacenters: Collection[Datacenter], kept: Mapping[ServiceName, Service]) -> Hidden:
    """Which of these, or of their nodes, the token may not read."""
    hidden, why = frozenset[ServiceName](), ""
    called = {name: _called(service) for name, service in kept.items()}
    nodes = {name: _nodes(service) for name, service in kept.items()}
    for datacenter in datacenters if kept else ():
        rights = await datacenter.permissions.to_read(
            frozenset().union(*called.values()), frozenset().union(*nodes.values())
        )
        here = {
            name for name in kept if not rights.known or called[name] & rights.services or nodes[name] & rights.nodes
        }
        hidden |= here
        why = why or (rights.why if here else "")
    return Hidden(hidden, why)


async def _obstacle(client: Asks, datacenter: Datacenter, service: Service) -> str:
    """Why the service cannot be said to be gone there; empty where it is."""
    params = {"dc": datacenter.name} if datacenter.name else {}
    kept = {endpoint.instance for endpoint in _endpoints(service)}
    for consul_name in sorted(_called(service)):
        try:
            answer = await client.get(f"/v1/health/service/{quote(consul_name, safe='')}", params)
            if answer.status != 200 or answer.filtered:
                return answer.refusal() or f"the token may not read all of {consul_name}"
            there = {datacenter.grader.instance_name(one) for one in instances_in(answer.body)}
        except (UnreachableError, MisreadError) as error:
            return str(error)
        if kept & there:
            datacenter.catalog.ask_anew()  # which lacked it, and waits for something to change
            return f"{consul_name} is there after all"
    return ""


def _endpoints(service: Service) -> list[Endpoint]:
    return [endpoint for port in service.ports for endpoint in port.endpoints]


def _called(service: Service) -> frozenset[str]:
    """What Consul may call it."""
    labels = (label for one in _endpoints(service) for label in one.labels)
    return frozenset({service.name.name, *(value for key, value in labels if key == _ROTOR_NAME)})


def _nodes(service: Service) -> frozenset[str]:
    return frozenset(one.node for one in _endpoints(service) if one.node)
