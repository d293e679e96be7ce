"""What `swashplate rbac` prints is what discovery needs, and all of it; who has less is told what is missing."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from swashplate.status import KUBERNETES, SourceReport
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until
from tests.registries.kube_api import KubeApi, Namespace

LABELS = {"mesh": "on"}
SETTINGS = {
    "a namespace": ["--kubernetes-namespaces", "{namespace}"],
    "all namespaces": [],
    "namespaces by label": ["--kubernetes-namespace-selector", "mesh=on"],
    "no labels of pods": ["--kubernetes-namespaces", "{namespace}", "--kubernetes-pod-labels", "false"],
    "pods by label": ["--kubernetes-namespaces", "{namespace}", "--kubernetes-pods", "true"],
    "pods by label everywhere": ["--kubernetes-pods", "true"],
    "nelson": ["--kubernetes-namespaces", "{namespace}", "--nelson", "true"],
}


def rbac(flags: list[str], account: str) -> str:
    """What the command prints."""
    command = [str(Path(sys.executable).with_name("swashplate")), "rbac", *flags, "--service-account", account]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def served(kube: KubeApi) -> Namespace:
    """A namespace with a service of one pod."""
    namespace = await kube.namespace(labels=LABELS)
    await namespace.service("web")
    await namespace.pod("web-1", "10.1.0.1", app="web", labels={"tbn_cluster": "web"})
    await namespace.settled("web", "10.1.0.1")
    return namespace


def follower(directory: Path, kubeconfig: Path, flags: list[str]) -> Site:
    return Site(directory, sources=(), flags=["--kubernetes", "true", "--kubeconfig", str(kubeconfig), *flags])


async def kubernetes(site: Site) -> SourceReport:
    return next(source for source in (await site.status()).sources if source.name == KUBERNETES)


@pytest.mark.parametrize("settings", SETTINGS)
async def test_the_rights_that_rbac_prints_are_enough_and_none_is_for_nothing(
    kube: KubeApi, tmp_path: Path, settings: str
) -> None:
    namespace = await served(kube)
    flags = [part.format(namespace=namespace.name) for part in SETTINGS[settings]]
    kubeconfig = kube.kubeconfig_for(tmp_path / "kubeconfig", await namespace.account("swashplate"))
    roles = rbac(flags, f"{namespace.name}/swashplate")
    await kube.apply(roles)
    async with follower(tmp_path, kubeconfig, flags).running() as site:

        async def has_the_pod() -> bool:
            source = await kubernetes(site)
            return source.state == "fresh" and source.endpoints > 0 and (await site.status()).in_force

        await until(has_the_pod, "the pod to be discovered")

    allowed = {
        (resource, verb)
        for document in yaml.safe_load_all(roles)
        for rule in (document or {}).get("rules", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    asked = list(kube.requests(f"system:serviceaccount:{namespace.name}:swashplate"))
    assert {request.status for request in asked} == {200}
    used = {(request.uri.partition("?")[0].rpartition("/")[2], request.verb) for request in asked}
    assert used <= allowed  # lists are for servers whose watches do not begin with what there is
    assert {resource for resource, _ in used} == {resource for resource, _ in allowed}


async def test_who_may_nothing_is_told_what_is_missing(kube: KubeApi, tmp_path: Path) -> None:
    namespace = await served(kube)
    flags = ["--kubernetes-namespaces", namespace.name]
    site = follower(tmp_path, kube.nobody, flags)
    await site.control.start()
    try:

        async def answers() -> bool:
            site.control.check_running()
            return (await site.get("/healthz"))[0] == 200

        async def told() -> str | None:
            return (await kubernetes(site)).error

        await until(answers, "the control plane to answer")
        error = await until(told, "status to have an error")
        assert error is not None
        assert "403" in error
        assert f"in namespace {namespace.name}" in error
        assert "swashplate rbac" in error
        assert not await site.is_ready()
    finally:
        await site.control.stop()


async def test_rights_that_come_later_are_used(kube: KubeApi, tmp_path: Path) -> None:
    namespace = await served(kube)
    flags = ["--kubernetes-namespaces", namespace.name]
    kubeconfig = kube.kubeconfig_for(tmp_path / "kubeconfig", await namespace.account("swashplate"))
    site = follower(tmp_path, kubeconfig, flags)
    await site.control.start()
    try:

        async def told() -> str | None:
            return (await kubernetes(site)).error

        async def has_the_pod() -> bool:
            return (await kubernetes(site)).endpoints == 1

        await until(told, "status to have an error")
        await kube.apply(rbac(flags, f"{namespace.name}/swashplate"))
        await until(has_the_pod, "the pod to be discovered", within=60)
        await until(site.is_ready, "the control plane to be ready")
    finally:
        await site.control.stop()
