"""Nothing that an operator of Rotor may have set is left without an answer, and each answer is ours."""

import re

import pytest

from swashplate.settings import Settings
from tests.docs.pages import Page

ROTOR = Page("docs/migrating-from-rotor.md")
NELSON = Page("docs/migrating-from-nelson.md")

# By subcommand, as its programs' sources have them; "" are those of all.
FLAGS = {
    "": """
        console.level delay diff.ignore-create diff.include-delete diff.dry-run
        api.key api.zone-name api.host api.port api.ssl api.insecure
        xds.addr xds.disabled xds.standalone-port xds.standalone-cluster xds.standalone-zone xds.default-timeout
        xds.resolve-dns xds.ca-file xds.interval xds.grpc-log-top xds.grpc-log-top-interval
        xds.static-resources.filename xds.static-resources.format xds.static-resources.conflict-behavior
        stats.backends stats.event-backends stats.source stats.unique-source stats.node stats.tags
        stats.prometheus.addr
    """,
    "kubernetes": """
        namespace selector cluster-label port-name timeout kubernetes-host ca-cert client-key client-cert
    """,
    "consul": "dc hostport use-ssl cluster-tag tag-delimiter",
    "file": "filename format",
    "aws": "cluster-tag-namespace vpc-id filters",
    "ecs": "clusters cluster-tag",
    "marathon": "group-prefix selector cluster-label",
    "exp-envoy-cds-v1": "addr sds-addr clusters-nodes",
    "exp-envoy-cds-v2": "addr",
}
GROUPS = ["stats.statsd.", "stats.dogstatsd.", "stats.wavefront.", "stats.honeycomb.", "aws.", "dcos."]
ENVIRONMENT = [
    "ROTOR_CMD", "ENVOY_XDS_HOST", "ENVOY_XDS_PORT", "ENVOY_NODE_ID", "ENVOY_NODE_CLUSTER", "ENVOY_NODE_ZONE",
]  # fmt: skip
COLLECTORS = (
    "kubernetes consul file aws ecs marathon exp-envoy-cds-v1 exp-envoy-cds-v1-file exp-envoy-cds-v2 xds-only"
)


def rows(page: Page) -> list[list[str]]:
    """The tables' rows."""
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.text.splitlines() if line[:1] == "|"
    ]
    return [row for row in found if not set(row[0]) <= {"-"}]


def variable(command: str, name: str) -> str:
    """As Rotor's own rule has it."""
    return "_".join(filter(None, ("ROTOR", command, name))).upper().translate(str.maketrans(".-", "__"))


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_of_rotor_has_an_answer(command: str) -> None:
    told = set(ROTOR.code)
    assert {name for name in FLAGS[command].split() if name not in told} == set()


def test_everything_else_that_rotor_is_told_has_an_answer() -> None:
    told = set(ROTOR.code)
    assert {name for name in (*GROUPS, *ENVIRONMENT, *COLLECTORS.split()) if name not in told} == set()


def test_variables_of_rotor_are_those_of_the_flags_beside_them() -> None:
    checked = 0
    for first, second, _ in (row for row in rows(ROTOR) if len(row) == 3):
        flags, variables = re.findall(r"`([^`]+)`", first), re.findall(r"`(ROTOR_\w+)`", second)
        if len(flags) == len(variables):
            for name, said in zip(flags, variables, strict=True):
                assert said in {variable(command, name) for command in FLAGS if name in FLAGS[command].split()}
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("page", [ROTOR, NELSON], ids=str)
def test_variables_of_ours_are_settings(page: Page) -> None:
    """Flags are in test_commands.py."""
    variables = {name for code in page.code for name in re.findall(r"SWASHPLATE_([A-Z_]+)", code)}
    assert {name.lower() for name in variables} <= Settings.model_fields.keys()
