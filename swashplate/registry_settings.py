"""Settings of discovery from registries: Kubernetes, Consul, and how several sources become one."""

from typing import Literal

from pydantic import BaseModel, Field

from discovery.consul.settings import ConsulSettings
from discovery.kubernetes.settings import KubernetesSettings
from swashplate.setting_types import Names, PathSetting, Shares


class KubernetesFields(BaseModel):
    """Discovery from Kubernetes."""

    kubernetes: bool = Field(
        False, description="Discover services from Kubernetes: Services with their EndpointSlices and pods."
    )
    kubeconfig: PathSetting | None = Field(
        None,
        description=(
            "kubectl's configuration file. Without it: the pod's own service account, else kubectl's default file."
        ),
    )
    kubernetes_context: str = Field(
        "", description="Context of the kubeconfig. Without it: the one that kubectl would use."
    )
    kubernetes_namespaces: Names = Field(
        (), description="Kubernetes namespaces to discover services in, `a,b`. Without it: all."
    )
    kubernetes_namespace_selector: str = Field(
        "", description="Label selector of the Kubernetes namespaces to discover services in, such as `mesh=on`."
    )
    kubernetes_selector: str = Field(
        "", description="Label selector of the Services to discover; with kubernetes_pods, of the pods."
    )
    kubernetes_pods: bool = Field(
        False,
        description=(
            "Discover pods by a label of theirs, as Rotor did, instead of Services: the label kubernetes_pod_label "
            "names the service."
        ),
    )
    kubernetes_pod_label: str = Field(
        "tbn_cluster", min_length=1, description="Label that names a pod's service, with kubernetes_pods."
    )
    kubernetes_pod_port: str = Field(
        "http", description="Name of the pods' TCP port, with kubernetes_pods; empty: the first one."
    )
    kubernetes_pod_labels: bool = Field(
        True,
        description=(
            "Give endpoints the labels of their pods, for subsets. `false` needs no right to list pods, and "
            "endpoints then have none."
        ),
    )
    kubernetes_publish_not_ready: bool = Field(
        False, description="Keep endpoints that are not ready as unhealthy ones, instead of leaving them out."
    )
    nelson: bool = Field(
        False,
        description=(
            "Understand Nelson's labels in Kubernetes: stacks and versions of Services and pods, and Services that "
            "share requests by weight."
        ),
    )


class ConsulFields(BaseModel):
    """Discovery from Consul."""

    consul: str | None = Field(
        None, description="Address of a Consul agent's HTTP API, such as http://127.0.0.1:8500, to discover services."
    )
    consul_token_file: PathSetting | None = Field(
        None, description="File with the ACL token for Consul. It is read anew when it changes."
    )
    consul_token: str = Field(
        "", repr=False, description="The ACL token for Consul itself; better give it in consul_token_file."
    )
    consul_ca: PathSetting | None = Field(
        None, description="File of the authorities that the Consul agent's certificate is checked against."
    )
    consul_cert: PathSetting | None = Field(None, description="Client certificate for the Consul agent.")
    consul_key: PathSetting | None = Field(None, description="Private key of consul_cert.")
    consul_server_name: str = Field(
        "", description="Name in the Consul agent's certificate, where it is not the one in its address."
    )
    consul_namespace: str = Field("", description="Namespace in Consul Enterprise.")
    consul_partition: str = Field("", description="Admin partition in Consul Enterprise.")
    consul_datacenters: Names = Field(
        (), description="Consul datacenters to discover services in, `a,b`. Without it: the agent's own."
    )
    consul_tag: str = Field(
        "",
        description=(
            "Discover only instances in Consul that have this tag (Rotor's: `tbn-cluster`); `TAG=name` gives their "
            "service another name. Without it: every service but Consul itself."
        ),
    )
    consul_tag_delimiter: str = Field(
        "=", description="What separates consul_tag from the name behind it. Empty: the tag only selects."
    )
    consul_filter: str = Field("", description="Filter expression of Consul's own over the instances to discover.")
    consul_address: Literal["service", "lan", "wan", "lan_ipv4", "lan_ipv6", "wan_ipv4", "wan_ipv6"] = Field(
        "service", description="Which of an instance's addresses in Consul to use; all but service are tagged ones."
    )
    consul_critical: Literal["out", "unhealthy"] = Field(
        "out",
        description="What becomes of instances with a critical check in Consul: left out, or kept as unhealthy ones.",
    )
    consul_passing_only: bool = Field(False, description="Leave out instances whose check in Consul warns, too.")
    consul_max_connections: int = Field(
        150, ge=8, description="Most connections to the Consul agent; services beyond that many are asked in turn."
    )
    consul_routes: str | None = Field(
        None,
        min_length=1,
        description="Prefix of keys in Consul with a route file each. For a service in both, --routes wins.",
    )
    lighthouse: bool = Field(
        False,
        description=(
            "Take what Nelson writes for Lighthouse into Consul: the dependencies of each stack become what nodes of "
            "that cluster see, and nothing else."
        ),
    )
    lighthouse_discovery: str = Field(
        "lighthouse/discovery/v1", min_length=1, description="Prefix of Lighthouse's discovery keys in Consul."
    )
    lighthouse_load_balancers_v1: str = Field(
        "nelson/loadbalancers/v1",
        min_length=1,
        description="Prefix of Nelson's load balancer keys of version 1 in Consul, with lighthouse.",
    )
    lighthouse_load_balancers_v2: str = Field(
        "nelson/loadbalancers/v2",
        min_length=1,
        description="Prefix of Nelson's load balancer keys of version 2 in Consul, with lighthouse.",
    )


class MergingFields(BaseModel):
    """Several sources as one."""

    source_weights: Shares = Field(
        {},
        description=(
            "Shares of a service's requests by the source of its endpoints, such as `kubernetes=90,consul=10`, for "
            "services that several sources have. Without it: every endpoint by its own weight. A route file's "
            "`sources` goes before it."
        ),
    )
    locality: Literal["none", "zone_aware", "failover"] = Field(
        "none",
        description=(
            "How callers prefer endpoints of their own zone, where a service's route file does not say: not at all; "
            "while these can take it (zone_aware); as long as one of these is healthy (failover)."
        ),
    )


def kubernetes_settings(fields: KubernetesFields) -> KubernetesSettings:
    """As the source takes them."""
    return KubernetesSettings(
        kubeconfig=fields.kubeconfig,
        context=fields.kubernetes_context,
        namespaces=fields.kubernetes_namespaces,
        namespace_selector=fields.kubernetes_namespace_selector,
        selector=fields.kubernetes_selector,
        pods=fields.kubernetes_pods,
        pod_label=fields.kubernetes_pod_label,
        pod_port=fields.kubernetes_pod_port,
        pod_labels=fields.kubernetes_pod_labels,
        nelson=fields.nelson,
        publish_not_ready=fields.kubernetes_publish_not_ready,
    )


def consul_settings(fields: ConsulFields) -> ConsulSettings:
    """As the source takes them. Raises ValueError for what does not go together, or where there is no address."""
    return ConsulSettings(
        url=fields.consul or "",
        token_file=fields.consul_token_file,
        token=fields.consul_token,
        ca=fields.consul_ca,
        cert=fields.consul_cert,
        key=fields.consul_key,
        server_name=fields.consul_server_name,
        namespace=fields.consul_namespace,
        partition=fields.consul_partition,
        datacenters=fields.consul_datacenters,
        tag=fields.consul_tag,
        tag_delimiter=fields.consul_tag_delimiter,
        filter=fields.consul_filter,
        address=fields.consul_address,
        critical=fields.consul_critical,
        passing_only=fields.consul_passing_only,
        max_connections=fields.consul_max_connections,
    )
