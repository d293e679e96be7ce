"""What instances come to: endpoints, and reasons for those that are left out. Pure."""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from discovery.address import parse_host
from discovery.consul.labels import LabelSets, labels_of, locality_of, said
from discovery.consul.naming import name_in_mesh
from discovery.consul.objects import Check, Instance
from discovery.consul.refusal import Refusal
from discovery.consul.settings import ConsulSettings
from discovery.left_out import LeftOut, Reason
from discovery.port_protocol import protocol_of_port_name
from mesh.service import Endpoint, Health, Protocol, ServiceName

PASSING: Final = "passing"
WARNING: Final = "warning"
CRITICAL: Final = "critical"
_NODE_MAINTENANCE: Final = "_node_maintenance"
_SERVICE_MAINTENANCE: Final = "_service_maintenance:"
_HEAVIEST: Final = 65_535
"""As Consul's own limit; what comes from a newer one must not overflow Envoy's sums."""


class Graded(NamedTuple):
    """A used instance. `protocol` is what it says that its port speaks."""

    endpoint: Endpoint
    protocol: Protocol


@dataclass(frozen=True, slots=True)
class Part:
    """What one Consul service in one datacenter says about one service of the mesh.

    `exists`: there is such a service, though perhaps nothing of it can be used.
    """

    graded: tuple[Graded, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    exists: bool = True


class Grader:
    """Grades the instances of one datacenter. `datacenter` is empty where it is the agent's own and the only one."""

    def __init__(self, settings: ConsulSettings, namespace: str, datacenter: str) -> None:
        self._settings, self._namespace, self._datacenter = settings, namespace, datacenter
        self._labels = LabelSets()

    def parts(self, service: str, instances: Iterable[Instance]) -> Mapping[ServiceName, Part]:
        """By the service of the mesh. Every instance is in one of them, used or left out, exactly once."""
        graded: dict[ServiceName, list[Graded]] = {}
        left: dict[ServiceName, list[LeftOut]] = {}
        named: set[ServiceName] = set()
        for instance in instances:
            if instance.fault:
                name = ServiceName(self._namespace, service)
                left.setdefault(name, []).append(self._left_out(instance, _misread(instance)))
                continue
            wanted = name_in_mesh(instance, self._settings)
            if isinstance(wanted, Refusal):
                name = ServiceName(self._namespace, service)
                verdict: Graded | Refusal = wanted
            else:
                name = ServiceName(self._namespace, wanted)
                verdict = self._graded(instance)
                named.add(name)
            if isinstance(verdict, Refusal):
                left.setdefault(name, []).append(self._left_out(instance, verdict))
            else:
                graded.setdefault(name, []).append(verdict)
        return {
            name: Part(tuple(graded.get(name, ())), tuple(left.get(name, ())), name in named)
            for name in sorted(graded.keys() | left.keys())
        }

    def instance_name(self, instance: Instance) -> str:
        """`node/id`, after the datacenter where there are several."""
        return "/".join(filter(None, (self._datacenter, *instance.key)))

    def _graded(self, instance: Instance) -> Graded | Refusal:
        health = graded(instance, self._settings)
        if isinstance(health, Refusal):
            return health
        where = address_of(instance, self._settings)
        if isinstance(where, Refusal):
            return where
        endpoint = Endpoint(
            where.host,
            where.port,
            min(health.weight, _HEAVIEST),
            health.health,
            locality_of(instance, region=self._datacenter),
            self._labels.of(
                labels_of(instance, like_rotor=bool(self._settings.tag), delimiter=self._settings.tag_delimiter)
            ),
            instance.node.node,
            where.others,
            self.instance_name(instance),
        )
        return Graded(endpoint, protocol_of_port_name(said(instance, "protocol")))

    def _left_out(self, instance: Instance, refusal: Refusal) -> LeftOut:
        registered = instance.service
        address = registered.address or instance.node.address
        return LeftOut(self.instance_name(instance), address, registered.port, *refusal)


def _misread(instance: Instance) -> Refusal:
    return Refusal(
        Reason.UNSUPPORTED,
        f"what Consul says of it cannot be read: {instance.fault}; mend its registration",
    )


class Grade(NamedTuple):
    """An instance that is used."""

    health: Health
    weight: int


def graded(instance: Instance, settings: ConsulSettings) -> Grade | Refusal:
    """By the worst of its checks and its node's."""
    checks = instance.checks or ()
    for check in checks:
        if check.status != PASSING and (why := _maintained(check)):
            return Refusal(Reason.MAINTENANCE, why)
    weights = instance.service.weights
    passing, warning = (weights.passing, weights.warning) if weights is not None else (1, 1)
    failing = [check for check in checks if check.status not in (PASSING, WARNING)]
    warns = [check for check in checks if check.status == WARNING]
    if failing:
        if settings.critical == "unhealthy":
            return Grade(Health.UNHEALTHY, max(passing, 1))
        return Refusal(Reason.CRITICAL, f"{_named(failing)} critical; see what it says in Consul")
    if warns and settings.passing_only:
        return Refusal(Reason.NOT_READY, f"{_named(warns)} warning, and only passing instances are asked for")
    weight, said_by = (warning, "Weights.Warning") if warns else (passing, "Weights.Passing")
    if weight < 1:
        because = f"{_named(warns)} warning, and its" if warns else "its"
        return Refusal(Reason.WEIGHT_ZERO, f"{because} {said_by} is {weight}")
    return Grade(Health.HEALTHY, weight)


class Where(NamedTuple):
    """Where an instance is reached; `others` are its IP addresses of the other family."""

    host: str
    port: int
    others: tuple[str, ...] = ()


def address_of(instance: Instance, settings: ConsulSettings) -> Where | Refusal:
    """The address that is asked for, else the instance's own, else its node's."""
    registered, node = instance.service, instance.node
    text, port = registered.address or node.address, registered.port
    if settings.address != "service":
        tagged = (registered.tagged_addresses or {}).get(settings.address)
        if tagged is not None and tagged.address:
            text, port = tagged.address, tagged.port or port
        elif not registered.address:  # an address of the instance's own says more than any of its node's
            text = (node.tagged_addresses or {}).get(settings.address) or text
    if not text:
        return Refusal(Reason.NO_ADDRESS, "neither it nor its node has an address; register it with one")
    host = _host(text)
    if isinstance(host, Refusal):
        return host
    if not 1 <= port <= 65535:
        return Refusal(Reason.NO_PORT, "it is registered without a port; register it with the one it serves on")
    return Where(host, port, _others(instance, host, port))


def _others(instance: Instance, host: str, port: int) -> tuple[str, ...]:
    """Addresses of the same instance in the other family: those it is itself tagged with, on the same port."""
    tagged = instance.service.tagged_addresses or {}
    version = _version(host)
    found = {
        other
        for key in ("lan_ipv4", "lan_ipv6")
        if version and (one := tagged.get(key)) is not None and one.port in (0, port)
        for other in (_host(one.address),)
        if isinstance(other, str) and _version(other) not in (0, version)
    }
    return tuple(sorted(found))


@lru_cache(maxsize=16_384)  # a change of one instance reads all of its service again
def _host(text: str) -> str | Refusal:
    try:
        return parse_host(text)
    except ValueError:
        return Refusal(
            Reason.BAD_ADDRESS,
            f"`{text[:80]}` is no address that requests can be sent to; mend it where it is registered",
        )


@lru_cache(maxsize=16_384)
def _version(host: str) -> int:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def _maintained(check: Check) -> str:
    if check.check_id == _NODE_MAINTENANCE:
        return "its node is in maintenance; `consul maint -disable` there ends it"
    if check.check_id.startswith(_SERVICE_MAINTENANCE):
        instance = check.check_id.removeprefix(_SERVICE_MAINTENANCE)
        return f"it is in maintenance; `consul maint -disable -service={instance}` on its node ends it"
    return ""


def _named(checks: list[Check]) -> str:
    names = [f"`{check.name or check.check_id}`" for check in checks[:3]]
    if len(checks) > 3:
        names.append(f"{len(checks) - 3} more")
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"the check {listed} is" if len(checks) == 1 else f"the checks {listed} are"
