"""The least rights that discovery needs, as what `kubectl apply -f -` takes."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from discovery.kubernetes.settings import KubernetesSettings

NAME: Final = "swashplate-discovery"
_GROUP: Final = "rbac.authorization.k8s.io"
_VERBS: Final = ("list", "watch")


def rules(settings: KubernetesSettings, *, account: str = "swashplate", namespace: str = "swashplate") -> str:
    """Roles and bindings for the service account `account` of `namespace`, as YAML documents.

    A Role in each of the namespaces that the settings name; a ClusterRole where they name none.
    """
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    documents: list[dict[str, Any]] = []
    if settings.namespaces and not settings.namespace_selector:
        for wanted in sorted(set(settings.namespaces)):
            documents += _bound("Role", wanted, list(_needed(settings)), subject)
    else:
        needed = list(_needed(settings))
        if settings.namespace_selector:
            needed.append(_rule("", "namespaces"))
        documents += _bound("ClusterRole", "", needed, subject)
    return yaml.safe_dump_all(documents, sort_keys=False, explicit_start=True)


def _needed(settings: KubernetesSettings) -> Iterator[dict[str, Any]]:
    if settings.pods:
        yield _rule("", "pods")
        return
    # The labels of pods are read as their metadata; RBAC knows no right to the metadata alone.
    yield _rule("", *(("pods", "services") if settings.pod_labels else ("services",)))
    yield _rule("discovery.k8s.io", "endpointslices")


def _rule(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(_VERBS)}


def _bound(
    kind: str, namespace: str, needed: list[dict[str, Any]], subject: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """A role and the binding that gives it to the subject."""
    metadata = {"name": NAME, "namespace": namespace} if namespace else {"name": NAME}
    version = f"{_GROUP}/v1"
    yield {"apiVersion": version, "kind": kind, "metadata": dict(metadata), "rules": needed}
    yield {
        "apiVersion": version,
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": NAME},
        "subjects": [dict(subject)],
    }
