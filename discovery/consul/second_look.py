"""Services of an earlier life that Consul did not list when we came back: whether they are really gone.

Nobody watched while they went, and the catalog may be that of a server that began anew, or of a token that may read
less. So each is asked for by name some time later.
"""

from collections.abc import Collection, Mapping
from urllib.parse import quote

from discovery.consul.client import UnreachableError
from discovery.consul.datacenter import Datacenter
from discovery.consul.objects import MisreadError, instances_in
from discovery.consul.question import Asks
from mesh.service import Service, ServiceName

_ROTOR_NAME = "consul:service"


async def gone(
    client: Asks, datacenters: Collection[Datacenter], kept: Mapping[ServiceName, Service]
) -> frozenset[ServiceName]:
    """Which of these no datacenter has any of the kept instances of; none where that cannot be told."""
    if not all(one.is_complete and one.lists_something and one.settled_in_s() == 0.0 for one in datacenters):
        return frozenset()
    found = set()
    for name, service in sorted(kept.items()):
        if all([await _has_none(client, datacenter, service) for datacenter in datacenters]):
            found.add(name)
    return frozenset(found)


async def _has_none(client: Asks, datacenter: Datacenter, service: Service) -> bool:
    endpoints = [endpoint for port in service.ports for endpoint in port.endpoints]
    called = {value for one in endpoints for key, value in one.labels if key == _ROTOR_NAME}
    called.add(service.name.name)
    rights = await datacenter.permissions.to_read(called, {one.node for one in endpoints if one.node})
    if not rights.known or rights.denied:
        return False
    params = {"dc": datacenter.name} if datacenter.name else {}
    kept = {endpoint.instance for endpoint in endpoints}
    for consul_name in sorted(called):
        try:
            answer = await client.get(f"/v1/health/service/{quote(consul_name, safe='')}", params)
            if answer.status != 200 or answer.filtered:
                return False
            there = {datacenter.grader.instance_name(one) for one in instances_in(answer.body)}
        except (UnreachableError, MisreadError):
            return False
        if kept & there:
            return False
    return True
