"""`swashplate rbac` prints what `kubectl apply` takes, for the settings given."""

import yaml
from click.testing import CliRunner

from swashplate.cli import main


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
