"""Kubernetes' objects are read as its API writes them, with all that it leaves out or writes as null."""

import msgspec
import pytest

from discovery.kubernetes.objects import (
    ENDPOINT_SLICES,
    NAMESPACES,
    POD_METADATA,
    PODS,
    SERVICES,
    EndpointSlice,
    Key,
    Known,
    Meta,
    Pod,
    Resource,
    Service,
)


def read(type_: type[Known], text: str) -> Known:
    return msgspec.json.decode(text.encode(), type=type_)


@pytest.mark.parametrize("type_", [Service, EndpointSlice, Pod, Known])
def test_an_object_needs_nothing_but_metadata(type_: type[Known]) -> None:
    item = read(type_, '{"metadata": {"name": "a", "namespace": "n", "unknown": [1]}, "unknown": {}}')
    assert item.key == Key("n", "a")
    assert item.metadata.labels == {}


def test_null_is_empty() -> None:
    meta = '"metadata": {"name": "a", "labels": null, "creationTimestamp": null}'
    service = read(Service, f'{{{meta}, "spec": {{"ports": null, "selector": null, "clusterIPs": null}}}}')
    assert isinstance(service, Service)
    assert (service.spec.ports, service.spec.selector, service.spec.cluster_ips) == ((), {}, ())
    assert service.metadata.creation_timestamp == ""
    found = read(EndpointSlice, f'{{{meta}, "endpoints": null, "ports": [{{"name": null, "port": null}}]}}')
    assert isinstance(found, EndpointSlice)
    assert found.endpoints == ()
    assert (found.ports[0].name, found.ports[0].port, found.ports[0].protocol) == ("", None, "TCP")
    pod = read(Pod, f'{{{meta}, "spec": {{"containers": null}}, "status": {{"podIPs": null, "conditions": null}}}}')
    assert isinstance(pod, Pod)
    assert (pod.spec.containers, pod.status.pod_ips, pod.status.conditions) == ((), (), ())


def test_names_are_the_apis_own() -> None:
    service = read(
        Service,
        '{"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "externalName": "x", '
        '"publishNotReadyAddresses": true, "ports": [{"port": 80, "targetPort": "http", "appProtocol": "grpc"}]}}',
    )
    assert isinstance(service, Service)
    assert (service.spec.cluster_ip, service.spec.external_name) == ("None", "x")
    assert service.spec.publish_not_ready_addresses
    assert (service.spec.ports[0].target_port, service.spec.ports[0].app_protocol) == ("http", "grpc")
    pod = read(
        Pod,
        '{"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", '
        '"ports": [{"containerPort": 80}]}]}, "status": {"podIP": "10.0.0.1", "hostIP": "10.9.0.1", '
        '"podIPs": [{"ip": "10.0.0.1"}], "containerStatuses": [{"name": "c", "ready": true, '
        '"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}',
    )
    assert isinstance(pod, Pod)
    assert (pod.status.pod_ip, pod.status.pod_ips[0].ip, pod.status.host_ip) == ("10.0.0.1", "10.0.0.1", "10.9.0.1")
    state = pod.status.container_statuses[0].state
    assert state.running is None
    assert state.waiting is not None
    assert state.waiting.reason == "CrashLoopBackOff"
    assert pod.spec.containers[0].ports[0].container_port == 80


def test_a_new_version_alone_is_no_difference() -> None:
    old, new = (Service(Meta(name="a", resource_version=version, labels={"x": "y"})) for version in ("1", "2"))
    assert old == new
    assert old != Service(Meta(name="a", resource_version="1", labels={"x": "z"}))
    assert old != Service(Meta(name="a", resource_version="1", labels={"x": "y"}, deletion_timestamp="now"))


@pytest.mark.parametrize(
    ("resource", "named", "everywhere"),
    [
        (SERVICES, "services", "/api/v1/services"),
        (ENDPOINT_SLICES, "endpointslices.discovery.k8s.io", "/apis/discovery.k8s.io/v1/endpointslices"),
        (PODS, "pods", "/api/v1/pods"),
        (POD_METADATA, "pods", "/api/v1/pods"),
        (NAMESPACES, "namespaces", "/api/v1/namespaces"),
    ],
)
def test_resources_are_named_and_found_as_kubectl(resource: Resource[Known], named: str, everywhere: str) -> None:
    assert str(resource) == named
    assert resource.path() == everywhere
    assert resource.path("n") == everywhere.replace(f"/{resource.plural}", f"/namespaces/n/{resource.plural}")
