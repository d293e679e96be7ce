"""The objects of the API by the service they belong to: what a change of one of them concerns, and nothing else.

Pure state: objects go in, names of services come out, and each can be asked for what it is now.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeVar

from discovery.kubernetes.labels import SharedLabels
from discovery.kubernetes.nelson import Virtual, stack_labels, stack_name, virtual_name, virtual_service
from discovery.kubernetes.objects import EndpointSlice, Key, Metadata, Pod, Service, TargetRef
from discovery.kubernetes.pods import service_name_of, service_of_pods
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.slices import Mapped, in_order, service_of, unselected
from discovery.left_out import LeftOut, Reason
from discovery.merge import Described, merged
from mesh.service import NO_LABELS, Labels, ServiceName
from mesh.service import Service as MeshService

G = TypeVar("G")
M = TypeVar("M")

SERVICE_LABEL: Final = "kubernetes.io/service-name"
"""Which Service a slice belongs to."""


class Index(Protocol):
    """What both ways of discovery keep. Changes are as a reflector's batch has them: None is gone."""

    def mapped(self, name: ServiceName) -> Mapped:
        """What there is of a service now."""

    def names(self, namespace: str) -> set[ServiceName]:
        """All services of a namespace (empty: of all of them), also those that are nothing but left out."""


class PodIndex:
    """Pods by the service that their label names."""

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings
        self._shared = SharedLabels()
        self._names: dict[Key, ServiceName] = {}
        self._pods: dict[ServiceName, dict[Key, Pod]] = {}

    def take_pods(self, changes: Mapping[Key, Pod | None]) -> set[ServiceName]:
        """The services that these pods concern."""
        concerned: set[ServiceName] = set()
        for key, pod in changes.items():
            before, now = self._names.pop(key, None), service_name_of(pod, self._settings) if pod else None
            if before is not None and before != now:
                _drop(self._pods, before, key)
            concerned.update(name for name in (before, now) if name is not None)
            if pod is not None and now is not None:
                self._names[key] = now
                self._pods.setdefault(now, {})[key] = pod
        return concerned

    def mapped(self, name: ServiceName) -> Mapped:
        """What there is of a service now."""
        pods = self._pods.get(name)
        return service_of_pods(name, pods.values(), self._settings, self._shared) if pods else Mapped(None)

    def names(self, namespace: str) -> set[ServiceName]:
        """All services of a namespace (empty: of all of them)."""
        return _of_namespace(self._pods, namespace)


class ServiceIndex:
    """Services with their slices, and the labels of the pods behind them.

    `remembered` are the labels that an earlier life knew of pods, for as long as nothing is known of the pod itself.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        self.remembered: dict[Key, Labels] = {}
        self._settings = settings
        self._shared = SharedLabels()
        self._services: dict[Key, Service] = {}
        self._called: dict[ServiceName, set[Key]] = {}
        self._slices: dict[Key, dict[Key, EndpointSlice]] = {}
        self._owners: dict[Key, Key] = {}
        self._pods: dict[Key, tuple[str, Labels]] = {}
        self._users: dict[Key, tuple[Key, ...]] = {}
        self._gone: set[Key] = set()
        self._members: dict[ServiceName, dict[Key, Service]] = {}

    def take_services(self, changes: Mapping[Key, Service | None]) -> set[ServiceName]:
        """The services that these Services concern, virtual ones too."""
        concerned: set[ServiceName] = set()
        for key, service in changes.items():
            if (before := self._services.pop(key, None)) is not None:
                concerned |= self._called_off(key, before)
            if service is not None:
                self._services[key] = service
                name, virtual = self._name(service), self._virtual(service)
                self._called.setdefault(name, set()).add(key)
                if virtual is not None:
                    self._members.setdefault(virtual, {})[key] = service
                concerned |= {name, virtual or name}
            # A slice that was seen first was put down under the Service's own name.
            concerned.add(ServiceName(*key))
        return concerned

    def take_slices(self, changes: Mapping[Key, EndpointSlice | None]) -> set[ServiceName]:
        """The services that these slices concern."""
        concerned: set[ServiceName] = set()
        for key, slice_ in changes.items():
            before = self._owners.pop(key, None)
            owner = _owner(slice_) if slice_ is not None else None
            old = self._slices[before].get(key) if before is not None else None
            if before is not None and before != owner:
                _drop(self._slices, before, key)
            if slice_ is not None and owner is not None:
                self._owners[key] = owner
                self._slices.setdefault(owner, {})[key] = slice_
            self._use(key, _pods_of(old), _pods_of(slice_) if owner is not None else set())
            concerned.update(self._name_at(one) for one in (before, owner) if one is not None)
        return concerned

    def take_pods(self, changes: Mapping[Key, Metadata | None]) -> set[ServiceName]:
        """The services whose endpoints' labels these pods change."""
        concerned: set[ServiceName] = set()
        for key, pod in changes.items():
            if pod is None:
                # Its labels stay for as long as a slice names it: it may be draining in a subset.
                if key in self._users:
                    self._gone.add(key)
                else:
                    self._pods.pop(key, None)
                continue
            self._gone.discard(key)
            known = (pod.metadata.uid, self._shared.of(pod.metadata.labels))
            if self._pods.get(key) != known:
                self._pods[key] = known
                owners = {self._owners[slice_] for slice_ in self._users.get(key, ())}
                concerned.update(self._name_at(owner) for owner in owners)
        return concerned

    def mapped(self, name: ServiceName) -> Mapped:
        """What there is of a service now: its own Service, else all that are called so, and its virtual ports."""
        keys = sorted(self._called.get(name, ()), key=lambda key: (key != tuple(name), key))
        parts = [(key, self._mapped_one(name, key)) for key in keys]
        slices = self._slices.get(Key(*name))
        if slices and Key(*name) not in self._services:
            parts.append((Key(*name), unselected(slices.values(), self._why_unselected(name))))
        left = [one for _, part in parts for one in part.left_out]
        described = [Described(f"service {key.name}", part.service) for key, part in parts if part.service]
        virtual = self.virtual(name)
        if virtual is not None:
            left += virtual.left_out
            if virtual.service.ports:
                described.append(Described("its members' labels", virtual.service))
        if not described:
            return Mapped(None, in_order(left))
        service, conflicts = _together(described)
        left += (LeftOut(loser, "", 0, Reason.DUPLICATE, f"by {winner}, {why}") for winner, loser, why in conflicts)
        return Mapped(service, in_order(left))

    def has(self, name: ServiceName) -> bool:
        """Whether there is a Service that is called so."""
        return name in self._called

    def virtual(self, name: ServiceName) -> Virtual | None:
        """The virtual service of that name, if Services say that they belong to one."""
        members = self._members.get(name)
        return virtual_service(name, members.values()) if members else None

    def names(self, namespace: str) -> set[ServiceName]:
        """All services of a namespace (empty: of all of them), also those that are nothing but left out."""
        orphans = {self._name_at(owner) for owner in self._slices if not namespace or owner.namespace == namespace}
        return _of_namespace(self._called, namespace) | _of_namespace(self._members, namespace) | orphans

    def _mapped_one(self, name: ServiceName, key: Key) -> Mapped:
        service = self._services[key]
        return service_of(
            service,
            self._slices.get(key, {}).values(),
            self._labels_of,
            name=name,
            publish_not_ready=self._settings.publish_not_ready,
            own_labels=stack_labels(service) if self._settings.nelson else NO_LABELS,
        )

    def _labels_of(self, namespace: str, target: TargetRef) -> Labels:
        key = Key(target.namespace or namespace, target.name)
        known = self._pods.get(key)
        if known is None:
            return self.remembered.get(key, NO_LABELS)
        uid, labels = known
        # Another pod of that name, which a StatefulSet made anew, says nothing of this one.
        return labels if target.uid in ("", uid) else NO_LABELS

    def _called_off(self, key: Key, service: Service) -> set[ServiceName]:
        """The names of a Service that is gone, or may be called otherwise now."""
        name, virtual = self._name(service), self._virtual(service)
        self._called[name].discard(key)
        if not self._called[name]:
            del self._called[name]
        if virtual is not None:
            _drop(self._members, virtual, key)
        return {name, virtual or name}

    def _name(self, service: Service) -> ServiceName:
        called = stack_name(service) if self._settings.nelson else service.metadata.name
        return ServiceName(service.metadata.namespace, called)

    def _name_at(self, key: Key) -> ServiceName:
        service = self._services.get(key)
        return self._name(service) if service is not None else ServiceName(*key)

    def _virtual(self, service: Service) -> ServiceName | None:
        return virtual_name(service) if self._settings.nelson else None

    def _use(self, slice_: Key, before: set[Key], now: set[Key]) -> None:
        """Which pods a slice names."""
        for pod in now - before:
            self._users[pod] = (*self._users.get(pod, ()), slice_)
        for pod in before - now:
            if others := tuple(user for user in self._users[pod] if user != slice_):
                self._users[pod] = others
                continue
            del self._users[pod]
            if pod in self._gone:
                self._gone.discard(pod)
                self._pods.pop(pod, None)

    def _why_unselected(self, name: ServiceName) -> str:
        selector = self._settings.selector
        unless = f", or the selector `{selector}` does not select it" if selector else ""
        return f"there is no Service `{name.name}` in the namespace `{name.namespace}`{unless}"


def _together(described: list[Described]) -> tuple[MeshService, list[tuple[str, str, str]]]:
    """One service of all, and (winner, loser, reason) of what they contradict each other about."""
    if len(described) == 1:
        return described[0].service, []
    both = merged(described)
    return both.service, [(conflict.winner, conflict.loser, conflict.reason) for conflict in both.conflicts]


def _owner(slice_: EndpointSlice) -> Key | None:
    name = (slice_.metadata.labels or {}).get(SERVICE_LABEL)
    return Key(slice_.metadata.namespace, name) if name else None


def _pods_of(slice_: EndpointSlice | None) -> set[Key]:
    if slice_ is None:
        return set()
    namespace = slice_.metadata.namespace
    refs: Iterable[TargetRef | None] = (endpoint.target_ref for endpoint in slice_.endpoints or ())
    return {Key(ref.namespace or namespace, ref.name) for ref in refs if ref is not None and ref.name}


def _of_namespace(names: Iterable[ServiceName], namespace: str) -> set[ServiceName]:
    return {name for name in names if not namespace or name.namespace == namespace}


def _drop(groups: dict[G, dict[Key, M]], group: G, key: Key) -> None:
    """Without empty groups left behind."""
    members = groups[group]
    del members[key]
    if not members:
        del groups[group]
