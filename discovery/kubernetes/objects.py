"""Kubernetes' objects as its API gives them: only the fields that discovery reads, by the API's names in snake case.

Go writes an empty list as null as often as it leaves it out, so what is read as null is empty here. Strings that
thousands of objects share (zones, nodes, label values) are interned.
"""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import force_setattr

V = TypeVar("V")
if TYPE_CHECKING:
    Nullable = Annotated[V, "null on the wire at times, never here"]
else:
    Nullable = V | None


class Object(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Fields the API leaves out have their zero value here."""


def _no_nulls(object_: Object, *names: str, empty: object = ()) -> None:
    for name in names:
        if getattr(object_, name) is None:
            force_setattr(object_, name, empty)


class Meta(Object, frozen=True, rename="camel", gc=False, eq=False):
    """An object's metadata. Two are equal when they differ in nothing but the resource version.

    `creation_timestamp` and `deletion_timestamp` are RFC 3339 in UTC, or empty.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: Nullable[str] = ""
    deletion_timestamp: Nullable[str] = ""
    labels: Nullable[dict[str, str]] = {}

    def __post_init__(self) -> None:
        intern = sys.intern
        force_setattr(self, "namespace", intern(self.namespace))
        _no_nulls(self, "creation_timestamp", "deletion_timestamp", empty="")
        force_setattr(self, "labels", {key: intern(value) for key, value in (self.labels or {}).items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meta) and self._content == other._content

    def __hash__(self) -> int:
        return hash((self.namespace, self.name, self.uid))

    @property
    def _content(self) -> tuple[object, ...]:
        return (self.namespace, self.name, self.uid, self.labels, self.deletion_timestamp, self.creation_timestamp)


class Key(NamedTuple):
    """Which object of its kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Known(Object, frozen=True, rename="camel", gc=False):
    """What every object has. By itself it is what the API gives as PartialObjectMetadata."""

    metadata: Meta

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)


T = TypeVar("T", bound=Known)
Metadata: TypeAlias = Known


class ServicePort(Object, frozen=True, rename="camel", gc=False):
    """One port of a Service. `target_port` is a number, a name of the pods', or 0 for the port itself."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    app_protocol: str | None = None
    target_port: int | str = 0


class ServiceSpec(Object, frozen=True, rename="camel", gc=False):
    """`cluster_ip` is "None" for a headless Service."""

    type: str = "ClusterIP"
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    cluster_ips: Nullable[tuple[str, ...]] = msgspec.field(default=(), name="clusterIPs")
    ports: Nullable[tuple[ServicePort, ...]] = ()
    selector: Nullable[dict[str, str]] = {}
    external_name: str = ""
    publish_not_ready_addresses: bool = False

    def __post_init__(self) -> None:
        _no_nulls(self, "cluster_ips", "ports")
        _no_nulls(self, "selector", empty={})


class Service(Known, frozen=True, rename="camel", gc=False):
    """A Service of v1."""

    spec: ServiceSpec = ServiceSpec()


class TargetRef(Object, frozen=True, rename="camel", gc=False):
    """What an endpoint is: most often a Pod."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def __post_init__(self) -> None:
        force_setattr(self, "kind", sys.intern(self.kind))
        force_setattr(self, "namespace", sys.intern(self.namespace))


class Conditions(Object, frozen=True, rename="camel", gc=False):
    """None is what the API calls unknown: `ready` and `serving` count as true then, `terminating` as false."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(Object, frozen=True, rename="camel", gc=False):
    """A zone that an endpoint is meant for."""

    name: str


class Hints(Object, frozen=True, rename="camel", gc=False):
    """Whom an endpoint is meant for."""

    for_zones: Nullable[tuple[ForZone, ...]] = ()

    def __post_init__(self) -> None:
        _no_nulls(self, "for_zones")


class Endpoint(Object, frozen=True, rename="camel", gc=False):
    """One endpoint of a slice. Only the first address counts, says the API; there is most often one."""

    addresses: tuple[str, ...]
    conditions: Conditions = Conditions()
    hostname: str | None = None
    node_name: str | None = None
    zone: str | None = None
    target_ref: TargetRef | None = None
    hints: Hints | None = None

    def __post_init__(self) -> None:
        if self.node_name:
            force_setattr(self, "node_name", sys.intern(self.node_name))
        if self.zone:
            force_setattr(self, "zone", sys.intern(self.zone))
        force_setattr(self, "conditions", _SHARED_CONDITIONS.get(self.conditions, self.conditions))


_SHARED_CONDITIONS: Final = {
    conditions: conditions
    for ready in (None, True, False)
    for serving in (None, True, False)
    for terminating in (None, True, False)
    for conditions in (Conditions(ready, serving, terminating),)
}


class SlicePort(Object, frozen=True, rename="camel", gc=False):
    """A port that all endpoints of a slice have. `port` None means every port, says the API."""

    name: Nullable[str] = ""
    port: int | None = None
    protocol: Nullable[str] = "TCP"
    app_protocol: str | None = None

    def __post_init__(self) -> None:
        _no_nulls(self, "name", empty="")
        _no_nulls(self, "protocol", empty="TCP")


class EndpointSlice(Known, frozen=True, rename="camel", gc=False):
    """An EndpointSlice of discovery.k8s.io/v1. `address_type`: IPv4, IPv6 or FQDN."""

    address_type: str = "IPv4"
    endpoints: Nullable[tuple[Endpoint, ...]] = ()
    ports: Nullable[tuple[SlicePort, ...]] = ()

    def __post_init__(self) -> None:
        _no_nulls(self, "endpoints", "ports")


class ContainerPort(Object, frozen=True, rename="camel", gc=False):
    """A port that a container says it has."""

    container_port: int
    name: str = ""
    protocol: str = "TCP"


class Container(Object, frozen=True, rename="camel", gc=False):
    """`restart_policy` is "Always" for an init container that stays: a sidecar."""

    name: str
    ports: Nullable[tuple[ContainerPort, ...]] = ()
    restart_policy: str | None = None

    def __post_init__(self) -> None:
        _no_nulls(self, "ports")


class PodSpec(Object, frozen=True, rename="camel", gc=False):
    """Where a pod runs, and its containers' ports."""

    node_name: str = ""
    containers: Nullable[tuple[Container, ...]] = ()
    init_containers: Nullable[tuple[Container, ...]] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "node_name", sys.intern(self.node_name))
        _no_nulls(self, "containers", "init_containers")


class Waiting(Object, frozen=True, rename="camel", gc=False):
    """Why a container does not run: "CrashLoopBackOff", "ImagePullBackOff"."""

    reason: str = ""


class ContainerState(Object, frozen=True, rename="camel", gc=False):
    """One of the three is there."""

    running: Object | None = None
    waiting: Waiting | None = None
    terminated: Waiting | None = None


class ContainerStatus(Object, frozen=True, rename="camel", gc=False):
    """What the kubelet says of a container."""

    name: str
    ready: bool = False
    state: ContainerState = ContainerState()


class PodCondition(Object, frozen=True, rename="camel", gc=False):
    """`status` is "True", "False" or "Unknown"."""

    type: str
    status: str
    reason: str | None = None


class PodIP(Object, frozen=True, rename="camel", gc=False):
    """One address of a pod."""

    ip: str = ""


class PodStatus(Object, frozen=True, rename="camel", gc=False):
    """`phase`: Pending, Running, Succeeded, Failed or Unknown. `pod_ips` has `pod_ip` first."""

    phase: str = ""
    reason: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: Nullable[tuple[PodIP, ...]] = msgspec.field(default=(), name="podIPs")
    host_ip: str = msgspec.field(default="", name="hostIP")
    conditions: Nullable[tuple[PodCondition, ...]] = ()
    container_statuses: Nullable[tuple[ContainerStatus, ...]] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "host_ip", sys.intern(self.host_ip))
        _no_nulls(self, "pod_ips", "conditions", "container_statuses")


class Pod(Known, frozen=True, rename="camel", gc=False):
    """A Pod of v1."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NamespaceStatus(Object, frozen=True, rename="camel", gc=False):
    """`phase`: Active or Terminating."""

    phase: str = ""


class Namespace(Known, frozen=True, rename="camel", gc=False):
    """A Namespace of v1."""

    status: NamespaceStatus = NamespaceStatus()


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A resource type of the API. `group` is empty for the core; `metadata_only` asks for nothing but metadata."""

    group: str
    version: str
    plural: str
    type: type[T]
    namespaced: bool = True
    metadata_only: bool = field(default=False, kw_only=True)

    def __str__(self) -> str:
        """As RBAC and kubectl name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "") -> str:
        """Where it is listed and watched; an empty namespace is all of them."""
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{base}/namespaces/{namespace}/{self.plural}" if namespace else f"{base}/{self.plural}"


SERVICES: Final = Resource("", "v1", "services", Service)
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", EndpointSlice)
PODS: Final = Resource("", "v1", "pods", Pod)
POD_METADATA: Final = Resource("", "v1", "pods", Metadata, metadata_only=True)
NAMESPACES: Final = Resource("", "v1", "namespaces", Namespace, namespaced=False)
