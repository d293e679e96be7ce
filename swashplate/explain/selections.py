"""What settings leave out of each source, in the words of `explain`."""

from collections.abc import Iterator, Mapping

from swashplate.settings import Settings
from swashplate.status import CONSUL, KUBERNETES


def selections(settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """By source; nothing for one that everything of is taken."""
    return {KUBERNETES: tuple(_of_kubernetes(settings)), CONSUL: tuple(_of_consul(settings))}


def _of_kubernetes(settings: Settings) -> Iterator[str]:
    if settings.kubernetes_namespaces:
        yield f"the namespaces {', '.join(settings.kubernetes_namespaces)}"
    if settings.kubernetes_namespace_selector:
        yield f"namespaces with {settings.kubernetes_namespace_selector}"
    if settings.kubernetes_pods:
        port = (
            f"with a TCP port named {settings.kubernetes_pod_port}" if settings.kubernetes_pod_port else "with a port"
        )
        yield f"pods that have the label {settings.kubernetes_pod_label}, {port}"
    if settings.kubernetes_selector:
        what = "pods" if settings.kubernetes_pods else "Services"
        yield f"{what} with {settings.kubernetes_selector}"


def _of_consul(settings: Settings) -> Iterator[str]:
    if settings.consul_datacenters:
        yield f"the datacenters {', '.join(settings.consul_datacenters)}"
    if settings.consul_tag:
        yield f"instances with a tag {settings.consul_tag}"
    if settings.consul_filter:
        yield f"instances that pass {settings.consul_filter}"
    if settings.consul_namespace:
        yield f"the namespace {settings.consul_namespace}"
    if settings.consul_partition:
        yield f"the partition {settings.consul_partition}"
