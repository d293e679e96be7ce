"""A Service and its EndpointSlices as one service of the mesh: pure, and the same whatever order they come in.

Each endpoint of each slice, port by port, is used or has a reason. The rules are those of the API's documentation
(discovery.k8s.io/v1) and, where that says nothing, of kube-proxy.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from discovery.kubernetes.addresses import family, usable
from discovery.kubernetes.graded import Refusal, graded
from discovery.kubernetes.labels import LabelsOf
from discovery.kubernetes.objects import Endpoint, EndpointSlice, Service, ServicePort, SlicePort
from discovery.kubernetes.ports import Plan, lacking, planned, target_of
from discovery.left_out import LeftOut, Reason
from mesh import service as mesh

DEFAULT_PORT: Final = 80
"""Of an ExternalName Service without ports: what a bare HTTP URL means."""

_BEST_FIRST: Final = (mesh.Health.HEALTHY, mesh.Health.DEGRADED, mesh.Health.DRAINING, mesh.Health.UNHEALTHY)
_NO_ADDRESS: Final = Refusal(Reason.NO_ADDRESS, "its slice gives it no address; mend whatever writes the slice")
_NO_PORTS: Final = Refusal(Reason.NO_PORT, "the Service has no ports; list them in its `spec.ports`")
_SECOND: Final = Refusal(
    Reason.UNSUPPORTED,
    "it is a further address of one endpoint, which means nothing to Kubernetes; write an endpoint of its own",
)


class Mapped(NamedTuple):
    """What was made of a service's objects. `service` is None where there is none."""

    service: mesh.Service | None
    left_out: tuple[LeftOut, ...] = ()


def service_of(
    service: Service,
    slices: Iterable[EndpointSlice],
    labels_of: LabelsOf,
    *,
    name: mesh.ServiceName,
    publish_not_ready: bool = False,
    own_labels: mesh.Labels = mesh.NO_LABELS,
) -> Mapped:
    """The service called `name`. Every endpoint has `own_labels` too, where its own don't say otherwise."""
    spec = service.spec
    if spec.type == "ExternalName":
        return _external(service, name, own_labels)
    cluster_ips = spec.cluster_ips or (spec.cluster_ip,)
    plan = planned(spec.ports or ())
    reading = _Reading(plan, publish_not_ready or spec.publish_not_ready_addresses)
    # Newest first, by what all replicas see alike; they need not have seen the same versions of a slice.
    for slice_ in sorted(slices, key=lambda s: (s.metadata.creation_timestamp or "", s.metadata.name), reverse=True):
        reading.read(slice_)
    endpoints = _Endpoints(reading, labels_of, own_labels, family(cluster_ips[0]))
    ports = [
        mesh.Port(there.port.name, there.port.port, there.fate, endpoints.of(port))
        for port, there in plan.items()
        if isinstance(there.fate, mesh.Protocol)
    ]
    ports.sort(key=lambda port: port.number)
    addresses = tuple(sorted({ip for ip in cluster_ips if family(ip)}))
    left = in_order(_unused(reading.left, ports)) if reading.left else ()
    return Mapped(mesh.Service(name, tuple(ports), addresses), left)


def unselected(slices: Iterable[EndpointSlice], why: str) -> Mapped:
    """What slices come to whose Service is not discovered."""
    left = [
        LeftOut(_instance(slice_, endpoint), address, port.port or 0, Reason.NOT_SELECTED, why)
        for slice_ in slices
        for endpoint in slice_.endpoints or ()
        for address in endpoint.addresses[:1]
        for port in slice_.ports or (SlicePort(),)
    ]
    return Mapped(None, in_order(left))


def in_order(left: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Sorted, each once."""
    return tuple(sorted(set(left), key=lambda one: (one.instance, one.address, one.port, one.reason, one.detail)))


def _unused(left: Iterable[LeftOut], ports: Iterable[mesh.Port]) -> Iterator[LeftOut]:
    """Those that are behind no port: what one port refuses, another one may use."""
    used = {
        (endpoint.instance, address, endpoint.port)
        for port in ports
        for endpoint in port.endpoints
        for address in (endpoint.address, *endpoint.other_addresses)
    }
    return (one for one in left if (one.instance, one.address, one.port) not in used)


class _Found(NamedTuple):
    """One address of one instance behind one port. `who` tells instances apart."""

    who: str
    instance: str
    address: str
    port: int
    health: mesh.Health
    endpoint: Endpoint
    namespace: str


class _Reading:
    """What slices say, read newest first: of an instance's address and port the first verdict counts."""

    def __init__(self, plan: Plan, publish_not_ready: bool) -> None:
        self.left: list[LeftOut] = []
        self._plan, self._publish_not_ready = plan, publish_not_ready
        self._verdicts: dict[tuple[str, str, str, int], _Found | LeftOut] = {}
        self._lacking: dict[tuple[str, str, str], LeftOut] = {}

    def read(self, slice_: EndpointSlice) -> None:
        """One more slice, not newer than those before."""
        ports = [(port.name or "", *target_of(port, self._plan)) for port in slice_.ports or ()]
        missing = self._plan.keys() - {name for name, _, _ in ports}
        namespace = slice_.metadata.namespace
        for endpoint in slice_.endpoints or ():
            instance, target = _instance(slice_, endpoint), endpoint.target_ref
            who = target.uid if target and target.uid else instance
            text, grade = self._graded(endpoint, slice_.address_type)
            self.left += (LeftOut(instance, more, 0, *_SECOND) for more in endpoint.addresses[1:])
            for name, number, refusal in ports:
                key, verdict = (name, who, text, number), refusal or grade
                if key in self._verdicts:
                    continue
                if isinstance(verdict, Refusal):
                    self._verdicts[key] = LeftOut(instance, text, number, *verdict)
                else:
                    self._verdicts[key] = _Found(who, instance, text, number, verdict, endpoint, namespace)
            for name in missing:
                self._lacking[name, who, text] = LeftOut(instance, text, 0, *lacking(self._plan[name]))
            if not ports and not self._plan:
                self.left.append(LeftOut(instance, text, 0, *_NO_PORTS))

    def found(self) -> dict[str, list[_Found]]:
        """What may be used, by the port's name; all else is in `left` from then on."""
        found: dict[str, list[_Found]] = {}
        for (name, who, address, _), verdict in self._verdicts.items():
            self._lacking.pop((name, who, address), None)  # another slice has the port
            if isinstance(verdict, LeftOut):
                self.left.append(verdict)
            else:
                found.setdefault(name, []).append(verdict)
        self.left += self._lacking.values()
        return found

    def _graded(self, endpoint: Endpoint, kind: str) -> tuple[str, mesh.Health | Refusal]:
        if not endpoint.addresses:
            return "", _NO_ADDRESS
        address = usable(endpoint.addresses[0], kind)
        if isinstance(address, Refusal):
            return endpoint.addresses[0], address
        return address, graded(endpoint.conditions, publish_not_ready=self._publish_not_ready)


class _Endpoints:
    """The endpoints behind each port."""

    def __init__(self, reading: _Reading, labels_of: LabelsOf, own: mesh.Labels, first_family: int) -> None:
        self._found = reading.found()
        self._left = reading.left
        self._labels_of, self._own, self._first_family = labels_of, own, first_family

    def of(self, port: str) -> tuple[mesh.Endpoint, ...]:
        """Those of one port, sorted. Instances whose address another one has are left out."""
        winners: dict[tuple[str, int], _Found] = {}
        for one in self._found.get(port, ()):
            other = winners.setdefault((one.address, one.port), one)
            if other is one:
                continue
            better, worse = sorted((other, one), key=lambda found: _BEST_FIRST.index(found.health))
            winners[one.address, one.port] = better
            why = f"{better.instance} has the same address and port, and is healthier or newer"
            self._left.append(LeftOut(worse.instance, worse.address, worse.port, Reason.DUPLICATE, why))
        made = [self._endpoint(group) for group in self._instances(winners.values())]
        made.sort(key=lambda endpoint: (endpoint.address, endpoint.port))
        return tuple(made)

    def _instances(self, found: Iterable[_Found]) -> Iterator[list[_Found]]:
        """The addresses of each instance, the one to use first: a pod's IPv4 and IPv6 address are one endpoint."""
        groups: dict[tuple[str, int], list[_Found]] = {}
        for one in found:
            groups.setdefault((one.who, one.port), []).append(one)
        for group in groups.values():
            if len(group) == 2 and {family(one.address) for one in group} == {4, 6}:
                yield sorted(group, key=lambda one: family(one.address) != (self._first_family or 4))
            else:
                yield from ([one] for one in group)

    def _endpoint(self, group: list[_Found]) -> mesh.Endpoint:
        first = group[0]
        endpoint = first.endpoint
        labels = mesh.NO_LABELS
        if endpoint.target_ref is not None:
            labels = self._labels_of(first.namespace, endpoint.target_ref)
        return mesh.Endpoint(
            first.address,
            first.port,
            health=max((one.health for one in group), key=_BEST_FIRST.index),
            locality=in_zone(endpoint.zone or ""),
            labels=with_defaults(labels, self._own),
            node=endpoint.node_name or "",
            other_addresses=tuple(one.address for one in group[1:]),
            instance=first.instance,
        )


@lru_cache(maxsize=4096)
def with_defaults(labels: mesh.Labels, defaults: mesh.Labels) -> mesh.Labels:
    """These labels, and those of `defaults` whose keys they lack."""
    keys = {key for key, _ in labels}
    missing = frozenset((key, value) for key, value in defaults if key not in keys)
    return labels | missing if missing else labels


def _external(service: Service, name: mesh.ServiceName, own: mesh.Labels) -> Mapped:
    """An ExternalName Service: a DNS name that Envoy resolves itself, behind each of the Service's ports."""
    instance, text = f"service {service.metadata.name}", service.spec.external_name
    address = usable(text)
    ports: list[mesh.Port] = []
    left: list[LeftOut] = []
    for there in planned(service.spec.ports or (ServicePort(DEFAULT_PORT),)).values():
        fate, number = there.fate, there.port.port
        if isinstance(fate, Refusal):
            left.append(LeftOut(instance, text, there.target, *fate))
        elif isinstance(address, Refusal):
            left.append(LeftOut(instance, text, there.target, *address))
            ports.append(mesh.Port(there.port.name, number, fate))
        else:
            endpoint = mesh.Endpoint(address, there.target, labels=own, instance=instance)
            ports.append(mesh.Port(there.port.name, number, fate, (endpoint,)))
    ports.sort(key=lambda port: port.number)
    return Mapped(mesh.Service(name, tuple(ports)), in_order(left))


def _instance(slice_: EndpointSlice, endpoint: Endpoint) -> str:
    """As `kubectl get` takes it."""
    target = endpoint.target_ref
    if target is not None and target.name:
        return f"{target.kind.lower() or 'pod'} {target.name}"
    return f"endpointslice {slice_.metadata.name}"


@lru_cache(maxsize=256)
def in_zone(zone: str) -> mesh.Locality:
    """A zone whose region nothing says; the same value for all its endpoints."""
    return mesh.Locality(zone=zone)
