"""The least rights: what the source asks for, and nothing else."""

import asyncio
from typing import Any

import pytest
import yaml

from discovery.kubernetes.objects import Namespace
from discovery.kubernetes.rbac import rules
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.source import KubernetesSource
from discovery.registry import Registry
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.seat import run, settle
from tests.kubernetes.manifests import of

SETTINGS = [
    KubernetesSettings(),
    KubernetesSettings(pod_labels=False),
    KubernetesSettings(pods=True),
    KubernetesSettings(nelson=True, selector="team=shop"),
    KubernetesSettings(namespaces=("shop", "depot")),
    KubernetesSettings(namespaces=("shop",), pods=True),
    KubernetesSettings(namespace_selector="mesh=yes"),
    KubernetesSettings(namespaces=("shop",), namespace_selector="mesh=yes"),
]


def documents(settings: KubernetesSettings) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(rules(settings)) if document]


def granted(settings: KubernetesSettings) -> set[tuple[str, str]]:
    """(namespace, resource) that may be listed and watched; an empty namespace is all of them."""
    return {
        (document["metadata"].get("namespace", ""), resource)
        for document in documents(settings)
        for rule in document.get("rules", [])
        for resource in rule["resources"]
    }


def asked(settings: KubernetesSettings) -> set[tuple[str, str]]:
    """(namespace, resource) of all that the source asks a cluster for, which has one namespace that is selected."""

    async def scenario() -> set[tuple[str, str]]:
        cluster = Cluster()
        cluster.put(of(Namespace, {"metadata": {"name": "selected", "namespace": ""}}))
        registry = Registry(["kubernetes"], lambda _: None, lambda: 0.0)
        source = KubernetesSource(
            settings,
            registry.feed("kubernetes"),
            store=None,
            now=lambda: 0.0,
            on_error=lambda _: None,
            on_routes=lambda _: None,
            api=cluster,
        )
        running = asyncio.create_task(source.run())
        await settle()
        running.cancel()
        await asyncio.wait([running])
        return {_namespace_and_resource(path) for path, api in cluster.paths.items() if api.count()}

    return run(scenario)


def _namespace_and_resource(path: str) -> tuple[str, str]:
    parts = path.split("/")
    return (parts[-2] if "namespaces" in parts[:-1] else "", parts[-1])


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_what_is_granted_is_what_is_asked_for(settings: KubernetesSettings) -> None:
    wanted = asked(settings)
    if settings.namespace_selector:
        # Which namespaces those are is not known beforehand, so the rights are for all of them.
        assert {resource for _, resource in wanted} <= {resource for _, resource in granted(settings)}
        assert {namespace for namespace, _ in granted(settings)} == {""}
    else:
        assert granted(settings) == wanted


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_only_lists_and_watches_are_granted_and_all_is_bound_to_the_account(settings: KubernetesSettings) -> None:
    found = documents(settings)
    assert {verb for document in found for rule in document.get("rules", []) for verb in rule["verbs"]} == {
        "list",
        "watch",
    }
    roles = [document for document in found if "rules" in document]
    bindings = [document for document in found if "roleRef" in document]
    assert [role["metadata"] for role in roles] == [binding["metadata"] for binding in bindings]
    for role, binding in zip(roles, bindings, strict=True):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (role["kind"], role["metadata"]["name"])
        assert binding["kind"] == f"{role['kind']}Binding"
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "swashplate", "namespace": "swashplate"}]
