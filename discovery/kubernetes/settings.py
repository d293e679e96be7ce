"""What of a Kubernetes cluster is discovered, and how it is read."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """Defaults discover the Services of all namespaces, with their pods' labels.

    `kubeconfig` and `context`: as kubectl's; without a kubeconfig, the pod's own service account, else kubectl's
    default file. `namespaces`: these only (empty: all); `namespace_selector`: those whose labels it selects, followed
    as they change. `selector`: a label selector, on Services, or on pods where `pods` is set.

    `pods`: pods by label instead of Services, as Rotor found them: the service is what `pod_label` says, the port the
    TCP port named `pod_port` (empty: the first one). `pod_labels`: endpoints get the labels of their pods.
    `nelson`: what Nelson's labels say of Services and pods counts too. `publish_not_ready`: endpoints that are not
    ready stay as unhealthy ones instead of being left out.
    """

    kubeconfig: Path | None = None
    context: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: str = ""
    selector: str = ""
    pods: bool = False
    pod_label: str = "tbn_cluster"
    pod_port: str = "http"
    pod_labels: bool = True
    nelson: bool = False
    publish_not_ready: bool = False
