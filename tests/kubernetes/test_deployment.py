"""The Deployment that is shown: a real API server takes it, and its parts go together."""

from pathlib import Path
from typing import Any, Final

import yaml
from click.testing import CliRunner

from swashplate.cli import main
from tests.registries.kube_api import KubeApi

MANIFEST: Final = (Path(__file__).parents[2] / "deploy/kubernetes/swashplate.yaml").read_text()
OF: Final[dict[str, Any]] = {one["kind"]: one for one in yaml.safe_load_all(MANIFEST)}


async def test_an_api_server_takes_the_deployment_and_the_rights(kube: KubeApi) -> None:
    await kube.apply(MANIFEST)
    printed = CliRunner().invoke(main, ["rbac"])
    assert printed.exit_code == 0
    await kube.apply(printed.stdout)
    made = await kube.call("GET", "/apis/apps/v1/namespaces/swashplate/deployments/swashplate")
    assert made["spec"]["template"]["spec"]["serviceAccountName"] == "swashplate"
    await kube.call("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/swashplate-discovery")
    await kube.call("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/swashplate-discovery")
    await kube.call("DELETE", "/api/v1/namespaces/swashplate")


def test_its_parts_go_together() -> None:
    template = OF["Deployment"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    taken = CliRunner().invoke(main, ["rbac", *container["args"]])  # it has all flags of `serve`
    assert taken.exit_code == 0, taken.output
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"0.0.0.0:{ports['ads']}" in container["args"]
    assert f"0.0.0.0:{ports['admin']}" in container["args"]
    assert {container[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")} == {"admin"}
    (dialled,) = OF["Service"]["spec"]["ports"]
    assert dialled["targetPort"] in ports
    assert OF["Service"]["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert container["args"][container["args"].index("--state") + 1] == mounted["state"]
    account = template["spec"]["serviceAccountName"]
    assert f"{OF['Namespace']['metadata']['name']}/{account}" in CliRunner().invoke(main, ["rbac", "--help"]).stdout
    assert OF["ServiceAccount"]["metadata"]["name"] == account
