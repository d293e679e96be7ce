"""The Kubernetes that other tests run against does what they take for granted."""

import pytest

from tests.e2e.harness.wait import until
from tests.registries.fixtures import unique
from tests.registries.http import RefusedError
from tests.registries.kube_api import CORE, KubeApi, down


async def test_readiness_and_deletion_reach_the_slices(kube: KubeApi) -> None:
    node = unique("node")
    await kube.node(node, region="eu", zone="eu-1")
    ns = await kube.namespace()
    await ns.service("web")
    await ns.pod("web-1", "10.1.0.1", app="web", node=node)
    await ns.pod("web-2", "10.1.0.2", app="web", ready=False)
    await ns.settled("web", "10.1.0.1")

    async def has_zone() -> bool:
        await ns.label("web-1", touched=unique("touched"))  # the controller may have seen the node too late
        endpoints = [endpoint for part in await ns.slices("web") for endpoint in part["endpoints"]]
        return {one.get("zone") for one in endpoints if one["conditions"]["ready"]} == {"eu-1"}

    await until(has_zone, "the pod's zone to be its node's", every=0.2)
    await ns.ready("web-2")
    await ns.settled("web", "10.1.0.1", "10.1.0.2")

    await ns.terminate("web-1")
    await ns.settled("web", "10.1.0.2")
    conditions = {
        endpoint["addresses"][0]: endpoint["conditions"]
        for part in await ns.slices("web")
        for endpoint in part["endpoints"]
    }
    assert conditions["10.1.0.1"] == {"ready": False, "serving": True, "terminating": True}
    await ns.remove("web-1")

    async def gone() -> bool:
        return all(len(part["endpoints"]) == 1 for part in await ns.slices("web"))

    await until(gone, "the removed pod to be out of the slices")


async def test_an_account_may_what_its_roles_allow_and_nothing_once_it_is_gone(kube: KubeApi) -> None:
    ns = await kube.namespace()
    token = await ns.account("reader")
    with pytest.raises(RefusedError, match="403"):
        await kube.call("GET", f"{ns.path}/services", token=token)
    await kube.apply(f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: reader, namespace: {ns.name}}}
rules: [{{apiGroups: [""], resources: [services], verbs: [list]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: reader, namespace: {ns.name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}
subjects: [{{kind: ServiceAccount, name: reader, namespace: {ns.name}}}]
""")

    async def status() -> int:
        try:
            await kube.call("GET", f"{ns.path}/services", token=token)
        except RefusedError as refused:
            return refused.status
        return 200

    async def allowed() -> bool:
        return await status() == 200

    async def unknown() -> bool:
        return await status() == 401

    await until(allowed, "the role to be known")
    user = f"system:serviceaccount:{ns.name}:reader"
    assert {(seen.verb, seen.status) for seen in kube.requests(user)} == {("list", 403), ("list", 200)}
    await ns.revoke("reader")
    await until(unknown, "the token to be refused", within=30)


async def test_a_crash_loses_nothing_and_slices_are_made_again(kube: KubeApi) -> None:
    ns = await kube.namespace()
    await ns.service("web")
    async with down(kube):
        with pytest.raises(OSError, match="Cannot connect"):
            await kube.call("GET", f"{CORE}/namespaces")
    await ns.pod("web-1", "10.1.0.3", app="web")
    await ns.settled("web", "10.1.0.3")
