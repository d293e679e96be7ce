"""Every example of the documentation is taken by the program as it stands there, and does what is said."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import envoy_api
from discovery.files.parse import parse as parse_services
from ratelimit.limits.parse import parse as parse_limits
from swashplate.cli import main
from swashplate.settings import Settings
from tests.docs.pages import Block, Page, pages, words, written_by_hand

EXAMPLES = [
    block
    for page in pages()
    for block in page.blocks
    if block.language == "yaml" and "kubernetes" not in block.info  # those are test_kubernetes.py's
]
BROKEN = "error"
"""The mark of an example that has to be wrong."""


def kind(block: Block) -> str:
    """Which kind of file the example is."""
    data: Any = yaml.load(block.text, Loader=yaml.CSafeLoader)
    if isinstance(data, list) or isinstance(data.get("services"), list):
        return "services"
    if "service" in data:
        return "routes"
    if "domain" in data:
        return "limits"
    if "resources" in data and isinstance(data["resources"], list):
        return "resources"
    if "cluster_template" in data:
        return "rotor"
    if data.keys() == {"rate_limit_service"}:
        return "a part of a filter"
    if "load_assignment" in data:
        return "a cluster"
    return "settings" if data.keys() <= Settings.model_fields.keys() else "nothing we know"


GOOD = [block for block in EXAMPLES if BROKEN not in block.info]
ROUTES = [block for block in GOOD if kind(block) == "routes"]
SERVICES = [block for block in GOOD if kind(block) == "services"]
SETTINGS = [block for block in GOOD if kind(block) == "settings"]
RESOURCES = [block for block in GOOD if kind(block) == "resources"]
ROTOR = [block for block in GOOD if kind(block) == "rotor"]
LIMITS = [block for block in GOOD if kind(block) == "limits"]
ASKING = [block for block in GOOD if kind(block) == "a part of a filter"]
CLUSTERS = [block for block in GOOD if kind(block) == "a cluster"]


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.output


def test_every_example_is_checked_as_something() -> None:
    """No YAML is shown that nothing here looks at."""
    looked_at = (*ROUTES, *SERVICES, *SETTINGS, *RESOURCES, *ROTOR, *LIMITS, *ASKING, *CLUSTERS)
    assert [str(block) for block in GOOD if block not in looked_at] == []


@pytest.mark.parametrize("block", ASKING, ids=str)
def test_how_a_filter_asks_is_as_envoy_writes_it(block: Block) -> None:
    data: Any = yaml.load(block.text, Loader=yaml.CSafeLoader)
    envoy_api.parse("envoy.config.ratelimit.v3.RateLimitServiceConfig", data["rate_limit_service"])


@pytest.mark.parametrize("block", CLUSTERS, ids=str)
def test_clusters_are_as_envoy_writes_them(block: Block) -> None:
    envoy_api.parse("envoy.config.cluster.v3.Cluster", yaml.load(block.text, Loader=yaml.CSafeLoader))


@pytest.mark.parametrize("block", ROUTES, ids=str)
def test_route_files_have_no_problems(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    file.write_text(block.text)
    code, said = run("check", "--no-envoy", str(file))
    assert (code, said) == (0, "1 file, 0 errors, 0 warnings; no Envoy was asked\n")


def test_a_real_envoy_takes_all_route_files(tmp_path: Path) -> None:
    for number, block in enumerate(ROUTES):
        # Several examples are about one service; to Envoy each is one of its own.
        text = re.sub(r"^(service: \S+)", rf"\1-{number}", block.text, count=1, flags=re.MULTILINE)
        (tmp_path / f"{number:02}.yaml").write_text(text)
    code, said = run("check", str(tmp_path))
    assert code == 0, said
    assert re.search(r"; Envoy \S+ was asked$", said)


@pytest.mark.parametrize("block", SERVICES, ids=str)
def test_service_files_have_no_problems(block: Block) -> None:
    reading = parse_services(block.text.encode(), str(block), default_namespace="default")
    assert reading.problems == ()
    assert reading.value


@pytest.mark.parametrize("block", LIMITS, ids=str)
def test_limit_files_have_no_problems(block: Block) -> None:
    reading = parse_limits(block.text, str(block))
    assert reading.problems == ()
    assert reading.value


@pytest.mark.parametrize("block", [*RESOURCES, *ROTOR], ids=str)
def test_a_real_envoy_takes_resource_files(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "example.yaml"
    file.write_text(block.text)
    code, said = run("check", "--resources" if block in RESOURCES else "--rotor-static", str(file))
    assert code == 0, said
    # Services that the example refers to are none of its own.
    assert set(re.findall(r": (error|warning) (\w+):", said)) <= {("warning", "X009")}


@pytest.mark.parametrize("block", SETTINGS, ids=str)
def test_settings_files_are_taken(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "swashplate.yaml"
    file.write_text(block.text)
    code, said = run("bootstrap", "--config", str(file), "--node", "n")
    assert code == 0, said


SESSIONS = [
    page
    for page in written_by_hand()
    if any(block.language == "console" and "$ swashplate check" in block.text for block in page.blocks)
]


@pytest.mark.parametrize("page", SESSIONS, ids=str)
def test_check_says_what_the_page_says(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's examples name their files; a later one of the same name is the next version of it."""
    monkeypatch.chdir(tmp_path)
    for block in page.blocks:
        if block.language == "yaml" and block.file is not None:
            Path(block.file).parent.mkdir(exist_ok=True)
            Path(block.file).write_text(block.text)
        elif block.language == "console" and block.text.startswith("$ swashplate check"):
            command, _, shown = block.text.removeprefix("$ ").partition("\n")
            _, said = run(*words(command)[1:])
            assert without_versions(said) == without_versions(shown), str(block)


def test_there_is_such_a_page() -> None:
    assert SESSIONS


def without_versions(text: str) -> str:
    return re.sub(r"Envoy \d+\.\d+\.\d+", "Envoy", text)
