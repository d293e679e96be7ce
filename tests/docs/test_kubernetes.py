"""The manifests that the documentation shows are discovered as the page says."""

import pytest
import yaml

from discovery.kubernetes.index import PodIndex, ServiceIndex
from discovery.kubernetes.objects import Key, Pod, Service
from discovery.kubernetes.settings import KubernetesSettings
from discovery.left_out import Reason
from mesh.rule import Forward
from mesh.service import Protocol, ServiceName
from tests.docs.pages import Block, pages
from tests.kubernetes.manifests import READY_POD, of

MANIFESTS = [block for page in pages() for block in page.blocks if "kubernetes" in block.info[1:]]
PODS = KubernetesSettings(pods=True)


def objects(block: Block) -> list[dict[str, object]]:
    return [document for document in yaml.safe_load_all(block.text) if document]


@pytest.mark.parametrize("block", MANIFESTS, ids=str)
def test_every_manifest_is_discovered(block: Block) -> None:
    services, pods = ServiceIndex(KubernetesSettings(nelson=True)), PodIndex(PODS)
    for manifest in objects(block):
        if manifest["kind"] == "Service":
            service = of(Service, manifest)
            names = services.take_services({service.key: service})
            assert all(services.mapped(name).left_out == () for name in names)
        else:
            pod = of(Pod, {**manifest, "status": yaml.safe_load(READY_POD)["status"]})
            (name,) = pods.take_pods({pod.key: pod})
            assert pods.mapped(name).left_out == ()


def test_they_are_what_the_page_says() -> None:
    services, said_pods = ServiceIndex(KubernetesSettings(nelson=True)), []
    for block in MANIFESTS:
        for manifest in objects(block):
            if manifest["kind"] == "Service":
                service = of(Service, manifest)
                services.take_services({service.key: service})
            else:
                said_pods.append(of(Pod, manifest))
    checkout = services.mapped(ServiceName("shop", "checkout")).service
    assert checkout is not None
    assert [(port.number, port.protocol) for port in checkout.ports] == [(80, Protocol.HTTP1), (9000, Protocol.GRPC)]
    virtual = services.virtual(ServiceName("shop", "inventory"))
    assert virtual is not None
    assert virtual.routes is not None
    assert isinstance(action := virtual.routes.rules[0].action, Forward)
    assert [share.share for share in action.split.shares] == [8400, 1600]
    assert [port.number for port in virtual.service.ports] == [9000]
    assert [pod.key for pod in said_pods] == [Key("shop", "checkout-1")]


def test_every_reason_that_kubernetes_gives_is_on_the_page() -> None:
    (page,) = {block.page for block in MANIFESTS}
    text = next(one.text for one in pages() if one.path == page)
    others = {Reason.CRITICAL, Reason.MAINTENANCE, Reason.WRONG_NAMESPACE, Reason.OTHER_SOURCE}
    assert [reason for reason in Reason if reason not in others and f"`{reason}`" not in text] == []
