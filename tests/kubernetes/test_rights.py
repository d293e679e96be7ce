"""What to do about a right that is missing: the very command, with the flags of the server and its account."""

import shlex

import pytest
import yaml
from click.testing import CliRunner

from discovery.kubernetes.errors import ApiError
from discovery.kubernetes.rbac import rules
from discovery.kubernetes.rights import rights_for
from discovery.kubernetes.settings import KubernetesSettings
from swashplate.cli import main
from tests.kubernetes.test_rbac import SETTINGS

SAID = 'services is forbidden: User "{}" cannot list resource "services" in API group "" at the cluster scope'
ACCOUNT = ApiError(403, "Forbidden", SAID.format("system:serviceaccount:ops:swashplate"))


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_the_command_prints_the_rights_for_these_settings_and_this_account(settings: KubernetesSettings) -> None:
    said = rights_for(ACCOUNT, settings, everywhere=False, labels=False)
    command = shlex.split(said.split("`")[1].split("|")[0])
    assert command[0] == "swashplate"
    printed = CliRunner().invoke(main, command[1:])
    assert printed.exit_code == 0, printed.output
    wanted = rules(settings, account="swashplate", namespace="ops")
    assert list(yaml.safe_load_all(printed.stdout)) == list(yaml.safe_load_all(wanted))


def test_someone_who_is_no_service_account_is_named() -> None:
    user = ApiError(403, "Forbidden", SAID.format("jane@example.com"))
    said = rights_for(user, KubernetesSettings(), everywhere=False, labels=False)
    assert said == "`swashplate rbac` prints the rights; bind them to `jane@example.com`"
    unnamed = ApiError(403, "Forbidden", "a proxy says no")
    assert rights_for(unnamed, KubernetesSettings(), everywhere=False, labels=False).endswith("bind them to who asks")


def test_who_asks_for_all_namespaces_is_told_that_some_can_be_named() -> None:
    said = rights_for(ACCOUNT, KubernetesSettings(), everywhere=True, labels=False)
    assert said.endswith("; where it may read some namespaces only, name them: `--kubernetes-namespaces`")
    selected = KubernetesSettings(namespace_selector="mesh=on")
    assert "some namespaces only" not in rights_for(ACCOUNT, selected, everywhere=True, labels=False)


def test_labels_can_be_done_without() -> None:
    said = rights_for(ACCOUNT, KubernetesSettings(namespaces=("shop",)), everywhere=False, labels=True)
    assert said.endswith("; or serve without pods' labels: `--kubernetes-pod-labels false`")
