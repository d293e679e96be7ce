"""Pods by label as services, as Rotor found them: a label names the service, a named container port is its port."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from discovery.kubernetes.addresses import usable
from discovery.kubernetes.graded import Refusal, graded_pod
from discovery.kubernetes.labels import SharedLabels
from discovery.kubernetes.objects import ContainerPort, Pod
from discovery.kubernetes.protocols import TCP
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.slices import Mapped, in_order, in_zone
from discovery.left_out import LeftOut, Reason
from discovery.merge import UNNUMBERED
from discovery.port_protocol import protocol_of_port_name
from mesh import service as mesh

NODE_LABEL: Final = "tbn_k8s_node_name"
HOST_LABEL: Final = "tbn_k8s_host_ip"
"""Rotor's labels for what a pod's own labels don't say; subsets may select by them."""

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
"""Kubernetes copies it from the node, since 1.35."""

_STAYS: Final = "Always"
"""The restart policy of an init container that is a sidecar: its ports stay too."""


def service_name_of(pod: Pod, settings: KubernetesSettings) -> mesh.ServiceName:
    """The service that a pod says it belongs to; its name is empty where the label is."""
    return mesh.ServiceName(pod.metadata.namespace, (pod.metadata.labels or {}).get(settings.pod_label, ""))


def service_of_pods(
    name: mesh.ServiceName, pods: Iterable[Pod], settings: KubernetesSettings, shared: SharedLabels
) -> Mapped:
    """The service of all pods that say they belong to `name`. Its port has no number: callers dial what they like."""
    endpoints: dict[tuple[str, int], mesh.Endpoint] = {}
    port_names: Counter[str] = Counter()
    left: list[LeftOut] = []
    # Those made last come first, by what all replicas see alike: of two on one address, it is the one that is there.
    newest_first = sorted(
        pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name), reverse=True
    )
    for pod in newest_first:
        verdict = _endpoint(pod, name, settings, shared)
        if isinstance(verdict, LeftOut):
            left.append(verdict)
            continue
        endpoint, port_name = verdict
        other = endpoints.setdefault((endpoint.address, endpoint.port), endpoint)
        if other is not endpoint:
            why = f"{other.instance} has the same address and port, and is newer"
            left.append(LeftOut(endpoint.instance, endpoint.address, endpoint.port, Reason.DUPLICATE, why))
            continue
        port_names[port_name] += 1
    if not name.name:
        return Mapped(None, in_order(left))
    most = min(port_names, key=lambda said: (-port_names[said], said), default=settings.pod_port)
    port = mesh.Port(
        "", UNNUMBERED, protocol_of_port_name(most), tuple(endpoints[place] for place in sorted(endpoints))
    )
    return Mapped(mesh.Service(name, (port,)), in_order(left))


def _endpoint(
    pod: Pod, name: mesh.ServiceName, settings: KubernetesSettings, shared: SharedLabels
) -> tuple[mesh.Endpoint, str] | LeftOut:
    """The pod's endpoint and the name of the port it is for, or why there is none."""
    instance, status = f"pod {pod.metadata.name}", pod.status
    addresses = [ip.ip for ip in status.pod_ips or () if ip.ip] or ([status.pod_ip] if status.pod_ip else [])
    port = next((one for one in _tcp_ports(pod) if settings.pod_port in ("", one.name)), None)
    first, number = addresses[0] if addresses else "", port.container_port if port else 0

    def left_out(refusal: Refusal) -> LeftOut:
        return LeftOut(instance, first, number, *refusal)

    if not name.name or ".." in name.name:
        why = f"its label `{settings.pod_label}` is `{name.name}`, which is no service name; set it to the service's"
        return left_out(Refusal(Reason.BAD_LABEL, why))
    grade = graded_pod(pod, publish_not_ready=settings.publish_not_ready)
    if isinstance(grade, Refusal):
        return left_out(grade)
    if port is None:
        return left_out(_no_port(pod, settings.pod_port))
    if not first:
        return left_out(Refusal(Reason.NO_ADDRESS, "it has no IP address yet; wait, or see `kubectl describe pod`"))
    address, *others = [usable(text, "IP") for text in addresses]
    if isinstance(address, Refusal):
        return left_out(address)
    endpoint = mesh.Endpoint(
        address,
        number,
        health=grade,
        locality=in_zone((pod.metadata.labels or {}).get(ZONE_LABEL, "")),
        labels=shared.of(_labels(pod, settings)),
        node=pod.spec.node_name,
        other_addresses=tuple(other for other in others if isinstance(other, str)),
        instance=instance,
    )
    return endpoint, port.name


def _labels(pod: Pod, settings: KubernetesSettings) -> dict[str, str]:
    own = (pod.metadata.labels or {}) if settings.pod_labels else {}
    labels = {key: value for key, value in own.items() if key != settings.pod_label}
    return {**labels, NODE_LABEL: pod.spec.node_name, HOST_LABEL: pod.status.host_ip}


def _tcp_ports(pod: Pod) -> Iterator[ContainerPort]:
    sidecars = [one for one in pod.spec.init_containers or () if one.restart_policy == _STAYS]
    for container in (*(pod.spec.containers or ()), *sidecars):
        yield from (port for port in container.ports or () if port.protocol in ("", TCP))


def _no_port(pod: Pod, wanted: str) -> Refusal:
    if not wanted:
        return Refusal(Reason.NO_PORT, "no container of it lists a TCP port; list it under `ports` in the pod's spec")
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    listed = [
        f"{port.container_port}{f' `{port.name}`' if port.name else ''} ({port.protocol})"
        for container in containers
        for port in container.ports or ()
    ]
    has = ", ".join(listed[:8]) or "none"
    return Refusal(Reason.NO_PORT, f"no container of it has a TCP port named `{wanted}`; it has {has}; name one so")
