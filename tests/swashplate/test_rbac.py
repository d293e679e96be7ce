"""`swashplate rbac` prints what `kubectl apply` takes, for the settings given."""

import click
import yaml
from click.testing import CliRunner

from swashplate.cli import main
from swashplate.commands import serve


def printed(*arguments: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(main, ["rbac", *arguments])
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.stdout))


def test_all_namespaces_are_a_cluster_role() -> None:
    role, binding = printed()
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert "pods" in str(role["rules"])
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "swashplate", "namespace": "swashplate"}]


def test_named_namespaces_are_roles_of_theirs_and_rights_follow_the_settings() -> None:
    documents = printed(
        *("--kubernetes-namespaces", "shop,web", "--kubernetes-pod-labels", "false"), "--service-account", "infra/cp"
    )
    assert [one["kind"] for one in documents] == ["Role", "RoleBinding"] * 2
    assert "pods" not in str(documents[0]["rules"])
    assert documents[1]["subjects"] == [{"kind": "ServiceAccount", "name": "cp", "namespace": "infra"}]


def test_an_account_without_a_namespace_is_refused() -> None:
    done = CliRunner().invoke(main, ["rbac", "--service-account", "cp"])
    assert done.exit_code == 2
    assert "write NAMESPACE/NAME" in done.stderr


def test_all_flags_of_serve_may_be_pasted() -> None:
    pasted = [
        "--kubernetes",
        "--kubernetes-pods",
        "--kubernetes-pod-label",
        "app",
        "--consul",
        "http://127.0.0.1:8500",
    ]
    assert printed(*pasted) == printed("--kubernetes-pods", "true")
    rbac = main.get_command(click.Context(main), "rbac")
    assert rbac is not None
    taken = {flag for parameter in rbac.params for flag in parameter.opts}
    assert {flag for parameter in serve.command.params for flag in parameter.opts} <= taken


def test_flags_that_change_nothing_are_not_explained() -> None:
    said = CliRunner().invoke(main, ["rbac", "--help"]).stdout
    assert "--kubernetes-pods" in said
    assert "--rollout-drain" not in said
