"""Objects of the API as tests write them: the parts that matter, read as the API's JSON is."""

from typing import Any, TypeVar

import msgspec
import yaml

from discovery.kubernetes.objects import EndpointSlice, Key, Known, Metadata, Pod, Service, TargetRef
from mesh.service import NO_LABELS, Labels, ServiceName

T = TypeVar("T", bound=Known)
SHOP = "shop"
CHECKOUT = ServiceName(SHOP, "checkout")


def of(type_: type[T], manifest: str | dict[str, Any], **metadata: Any) -> T:
    """An object from YAML or a dict; its namespace is `shop` where it says none."""
    value = yaml.safe_load(manifest) if isinstance(manifest, str) else manifest
    value = {**value, "metadata": {"namespace": SHOP, **value.get("metadata", {}), **metadata}}
    return msgspec.json.decode(msgspec.json.encode(value), type=type_)


def service(
    ports: list[dict[str, Any]] | None = None, *, name: str = "checkout", labels: Any = None, **spec: Any
) -> Service:
    ports = [{"port": 80, "name": "http", "targetPort": 8080}] if ports is None else ports
    return of(Service, {"metadata": {"name": name, "labels": labels}, "spec": {"ports": ports, **spec}})


def endpoint(address: str, pod: str = "", uid: str = "", **fields: Any) -> dict[str, Any]:
    """An endpoint of a slice. `pod` alone is its own uid; a `ready` or `serving` of its own is a condition."""
    conditions = {key: fields.pop(key) for key in ("ready", "serving", "terminating") if key in fields}
    made: dict[str, Any] = {"addresses": [address], "conditions": conditions, **fields}
    if pod:
        made["targetRef"] = {"kind": "Pod", "namespace": SHOP, "name": pod, "uid": uid or pod}
    return made


def slice_(
    *endpoints: dict[str, Any],
    ports: list[dict[str, Any]] | None = None,
    name: str = "checkout-1",
    service: str = "checkout",
    kind: str = "IPv4",
    created: str = "2026-01-01T00:00:00Z",
) -> EndpointSlice:
    return of(
        EndpointSlice,
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
            "addressType": kind,
            "endpoints": list(endpoints),
            "ports": [{"name": "http", "port": 8080}] if ports is None else ports,
        },
        creationTimestamp=created,
    )


def pod_metadata(name: str, uid: str = "", **labels: str) -> Metadata:
    return of(Metadata, {"metadata": {"name": name, "labels": labels}}, uid=uid or name)


def pod(name: str, manifest: str = "", **labels: str) -> Pod:
    """A pod that is ready on 10.0.0.1, with a port `http`, but for what the manifest says."""
    value: dict[str, Any] = yaml.safe_load(READY_POD)
    said = yaml.safe_load(manifest) or {}
    for part in ("spec", "status"):
        value[part] |= said.get(part, {})
    metadata = {"name": name, "uid": name, "labels": labels, **said.get("metadata", {})}
    return of(Pod, value, **metadata)


READY_POD = """
spec:
  nodeName: node-1
  containers:
  - {name: app, ports: [{containerPort: 8080, name: http, protocol: TCP}]}
status:
  phase: Running
  podIP: 10.0.0.1
  podIPs: [{ip: 10.0.0.1}]
  hostIP: 192.168.0.1
  conditions: [{type: Ready, status: "True"}]
  containerStatuses: [{name: app, ready: true, state: {running: {}}}]
"""


def no_labels(namespace: str, target: TargetRef) -> Labels:
    return NO_LABELS


def by_key(*objects: T) -> dict[Key, T]:
    """As a batch has them."""
    return {one.key: one for one in objects}
