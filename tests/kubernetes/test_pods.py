"""Pods by label: what Rotor found, and why it does not find the others."""

import pytest

from discovery.kubernetes.labels import SharedLabels
from discovery.kubernetes.objects import Pod
from discovery.kubernetes.pods import service_of_pods
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.slices import Mapped
from discovery.left_out import Reason
from discovery.merge import UNNUMBERED
from mesh.service import Endpoint, Health, Locality, Port, Protocol, Service, ServiceName
from tests.kubernetes.manifests import CHECKOUT, SHOP, pod

SETTINGS = KubernetesSettings(pods=True)
LABEL = {"tbn_cluster": "checkout"}


def mapped(*pods: Pod, settings: KubernetesSettings = SETTINGS, name: ServiceName = CHECKOUT) -> Mapped:
    return service_of_pods(name, pods, settings, SharedLabels())


def endpoints_of(found: Mapped) -> tuple[Endpoint, ...]:
    assert found.service is not None
    (port,) = found.service.ports
    return port.endpoints


def why(found: Mapped) -> list[tuple[str, Reason]]:
    return [(one.instance, one.reason) for one in found.left_out]


def test_rotors_documented_pod_is_the_endpoint_that_rotor_made_of_it() -> None:
    """https://github.com/turbinelabs/rotor, "Kubernetes": the label names the cluster, the others are metadata."""
    found = mapped(pod("checkout-1", **LABEL, stage="prod", version="1.4"))
    labels = {"stage": "prod", "version": "1.4", "tbn_k8s_node_name": "node-1", "tbn_k8s_host_ip": "192.168.0.1"}
    endpoint = Endpoint("10.0.0.1", 8080, labels=frozenset(labels.items()), node="node-1", instance="pod checkout-1")
    assert found == Mapped(Service(CHECKOUT, (Port("", UNNUMBERED, Protocol.HTTP1, (endpoint,)),)))


@pytest.mark.parametrize(
    ("manifest", "reason", "says"),
    [
        ("status: {phase: Pending, containerStatuses: null}", Reason.NOT_READY, "Pending"),
        ("status: {phase: Succeeded}", Reason.TERMINATED, "Succeeded"),
        ("status: {phase: Failed, reason: Evicted}", Reason.TERMINATED, "Evicted"),
        (
            "status: {containerStatuses: [{name: app, ready: true, state: {running: {}}}, {name: b, ready: false, "
            "state: {waiting: {reason: CrashLoopBackOff}}}]}",
            Reason.NOT_READY,
            "CrashLoopBackOff",
        ),
        (
            "status: {containerStatuses: [{name: app, ready: false, state: {running: {}}}]}",
            Reason.NOT_READY,
            "readiness probe",
        ),
        ('status: {conditions: [{type: Ready, status: "False", reason: NodeLost}]}', Reason.NOT_READY, "NodeLost"),
        (
            "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\n"
            "status: {containerStatuses: [{name: app, ready: false, state: {running: {}}}]}",
            Reason.TERMINATED,
            "terminating",
        ),
        (
            "spec: {containers: [{name: app, ports: [{containerPort: 80, name: web}]}]}",
            Reason.NO_PORT,
            "80 `web` (TCP)",
        ),
        (
            "spec: {containers: [{name: app, ports: [{containerPort: 80, name: http, protocol: UDP}]}]}",
            Reason.NO_PORT,
            "80 `http` (UDP)",
        ),
        ("spec: {containers: [{name: app}]}", Reason.NO_PORT, "it has none"),
        ("status: {podIP: '', podIPs: null}", Reason.NO_ADDRESS, "no IP address"),
        ("status: {podIPs: [{ip: 0.0.0.0}]}", Reason.BAD_ADDRESS, "0.0.0.0"),
    ],
)
def test_a_pod_that_is_not_used_says_why(manifest: str, reason: Reason, says: str) -> None:
    found = mapped(pod("a", manifest, **LABEL))
    assert why(found) == [("pod a", reason)]
    assert says in found.left_out[0].detail
    assert endpoints_of(found) == ()


def test_a_terminating_pod_that_is_ready_drains() -> None:
    found = mapped(pod("a", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", **LABEL))
    assert [one.health for one in endpoints_of(found)] == [Health.DRAINING]


def test_what_is_not_ready_can_be_unhealthy_instead() -> None:
    waiting = pod("a", "status: {containerStatuses: [{name: app, ready: false, state: {running: {}}}]}", **LABEL)
    found = mapped(waiting, settings=KubernetesSettings(pods=True, publish_not_ready=True))
    assert [one.health for one in endpoints_of(found)] == [Health.UNHEALTHY]


def test_the_zone_of_its_node_is_where_a_pod_runs() -> None:
    found = mapped(pod("a", **LABEL, **{"topology.kubernetes.io/zone": "eu-1a"}))
    assert [one.locality for one in endpoints_of(found)] == [Locality(zone="eu-1a")]


def test_both_addresses_of_a_pod_are_one_endpoint() -> None:
    found = mapped(pod("a", "status: {podIPs: [{ip: 10.0.0.1}, {ip: 'FD00::A'}]}", **LABEL))
    assert [(one.address, one.other_addresses) for one in endpoints_of(found)] == [("10.0.0.1", ("fd00::a",))]


def test_without_a_wanted_name_the_first_tcp_port_counts() -> None:
    ports = "[{containerPort: 53, name: dns, protocol: UDP}, {containerPort: 9000, name: grpc}, {containerPort: 80}]"
    found = mapped(
        pod("a", f"spec: {{containers: [{{name: app, ports: {ports}}}]}}", **LABEL),
        settings=KubernetesSettings(pods=True, pod_port=""),
    )
    assert [one.port for one in endpoints_of(found)] == [9000]
    assert found.service is not None
    assert found.service.ports[0].protocol is Protocol.GRPC


def test_the_port_of_a_sidecar_container_counts_and_that_of_an_init_container_does_not() -> None:
    init = "initContainers: [{name: init, ports: [{containerPort: 1, name: http}]%s}]"
    containers = "containers: [{name: app}]"
    sidecar = pod("a", f"spec: {{{containers}, {init % ', restartPolicy: Always'}}}", **LABEL)
    assert [one.port for one in endpoints_of(mapped(sidecar))] == [1]
    assert why(mapped(pod("a", f"spec: {{{containers}, {init % ''}}}", **LABEL))) == [("pod a", Reason.NO_PORT)]


def test_of_two_pods_on_one_address_the_newer_has_it_in_any_order() -> None:
    old = pod("b", "metadata: {creationTimestamp: '2026-01-01T00:00:00Z'}", **LABEL)
    new = pod("a", "metadata: {creationTimestamp: '2026-01-02T00:00:00Z'}", **LABEL)
    assert mapped(old, new) == mapped(new, old)
    assert [one.instance for one in endpoints_of(mapped(old, new))] == ["pod a"]
    assert why(mapped(old, new)) == [("pod b", Reason.DUPLICATE)]


@pytest.mark.parametrize("label", ["", "a..b"])
def test_a_label_that_is_no_name_has_a_reason(label: str) -> None:
    found = mapped(pod("a", tbn_cluster=label), name=ServiceName(SHOP, label))
    assert why(found) == [("pod a", Reason.BAD_LABEL)]
    assert found.service is None or endpoints_of(found) == ()


def test_without_pod_labels_rotors_own_two_stay() -> None:
    found = mapped(pod("a", **LABEL, stage="prod"), settings=KubernetesSettings(pods=True, pod_labels=False))
    assert {key for key, _ in endpoints_of(found)[0].labels} == {"tbn_k8s_node_name", "tbn_k8s_host_ip"}
