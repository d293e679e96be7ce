"""The Deployment of the rate limit service that is shown: a real API server takes it, and its parts go together."""

from pathlib import Path
from typing import Any, Final

import yaml
from click.testing import CliRunner

from swashplate.cli import main
from swashplate.commands.ratelimit.serve import command
from swashplate.options import environment_variable
from swashplate.ratelimit_contradictions import limit_contradictions
from swashplate.ratelimit_settings import RATELIMIT_PREFIX
from swashplate.settings import Settings
from tests.registries.kube_api import KubeApi

MANIFEST: Final = (Path(__file__).parents[2] / "deploy/kubernetes/ratelimit.yaml").read_text()
OF: Final[dict[str, Any]] = {one["kind"]: one for one in yaml.safe_load_all(MANIFEST)}


async def test_an_api_server_takes_it(kube: KubeApi) -> None:
    await kube.apply(MANIFEST)
    made = await kube.call("GET", "/apis/apps/v1/namespaces/ratelimit/deployments/ratelimit")
    assert made["spec"]["replicas"] == 2
    await kube.call("DELETE", "/api/v1/namespaces/ratelimit")


def test_its_limits_have_no_errors(tmp_path: Path) -> None:
    for name, text in OF["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text)
    checked = CliRunner().invoke(main, ["ratelimit", "check", str(tmp_path)])
    assert checked.exit_code == 0, checked.output


def test_its_parts_go_together() -> None:
    spec = OF["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    given = dict(zip(container["args"][::2], container["args"][1::2], strict=True))
    (variable,) = container["env"]
    assert variable["name"] == environment_variable("redis")
    assert variable["valueFrom"]["secretKeyRef"]["name"] in MANIFEST.partition("apiVersion")[0]
    command.make_context("serve", list(container["args"]))
    settings = Settings.model_validate(
        {f"ratelimit_{flag[2:]}": text for flag, text in given.items()} | {"redis": "redis://redis:6379"}
    )
    assert list(limit_contradictions(settings, RATELIMIT_PREFIX)) == []
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (settings.ratelimit_listen, str(settings.ratelimit_http)) == (
        f"0.0.0.0:{ports['grpc']}",
        f"0.0.0.0:{ports['http']}",
    )
    probes = {name: container[name]["httpGet"] for name in ("readinessProbe", "livenessProbe")}
    assert probes["readinessProbe"] == {"path": "/readyz", "port": "http"}
    assert probes["livenessProbe"] == {"path": "/healthz", "port": "http"}
    before = float(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert spec["terminationGracePeriodSeconds"] > before + settings.ratelimit_drain.total_seconds() + 2
    (mounted,) = container["volumeMounts"]
    (volume,) = spec["volumes"]
    assert mounted["name"] == volume["name"]
    assert mounted["mountPath"] == str(settings.ratelimit_config)
    assert volume["configMap"]["name"] == OF["ConfigMap"]["metadata"]["name"]
    assert {one["metadata"]["namespace"] for kind, one in OF.items() if kind != "Namespace"} == {"ratelimit"}
    (dialled,) = OF["Service"]["spec"]["ports"]
    assert dialled["targetPort"] in ports
    labels = OF["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert OF["Service"]["spec"]["selector"].items() <= labels.items()
