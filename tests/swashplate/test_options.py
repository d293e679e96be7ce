"""What no command takes without a word: an option given twice, one that says nothing without another, a kubeconfig
that is not there."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from discovery.kept import KeptServices
from discovery.kubernetes.source import KIND
from discovery.registry import Evidence, Registry
from operator_files.store import LastGoodStore
from swashplate.cli import main
from tests.swashplate.registries import a_service
from tests.swashplate.site import Site

DEADLINE_S = 30.0
KUBECONFIG = {
    "current-context": "test",
    "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1/"}}],
    "users": [{"name": "u", "user": {}}],
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("serve --services a.yaml --services b.yaml", "--services is given twice, as 'a.yaml' and as 'b.yaml'"),
        ("serve --consul http://a:1 --consul=http://b:1", "--consul is given twice"),
        ("serve --kubernetes --kubernetes", "--kubernetes is given twice"),
        ("serve --config a --config b", "--config is given twice"),
        ("check --routes a --routes b", "--routes is given twice"),
        ("render --node a --node b --services c", "--node is given twice"),
        ("explain route checkout --node a --node b", "--node is given twice"),
        ("explain route checkout -X GET --method POST", "--method is given twice"),
        ("status --admin 127.0.0.1:1 --admin 127.0.0.1:2", "--admin is given twice"),
        ("ratelimit check limits --redis redis://a --redis redis://b", "--redis is given twice"),
    ],
)
def test_an_option_given_twice_is_an_error(arguments: str, said: str) -> None:
    result = CliRunner().invoke(main, arguments.split())
    assert result.exit_code == 2
    assert said in result.stderr
    assert "give it once" in result.stderr


def test_lists_add_up_and_options_of_several_values_stay_so() -> None:
    def bound(*flags: str) -> list[str]:
        result = CliRunner().invoke(main, ["rbac", *flags])
        assert result.exit_code == 0, result.output
        return sorted(
            one["metadata"]["namespace"] for one in yaml.safe_load_all(result.stdout) if one["kind"] == "Role"
        )

    flag = "--kubernetes-namespaces"
    assert bound(flag, "shop", flag, "web,ops") == bound(flag, "shop,web,ops") == ["ops", "shop", "web"]
    twice = CliRunner().invoke(
        main, ["explain", "route", "x", "-H", "a:1", "-H", "b:2", "--server", "http://[::1]:1"]
    )
    assert "given twice" not in twice.stderr


@pytest.mark.parametrize("command", ["serve", "check"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--lighthouse", "--lighthouse says nothing without --consul"),
        ("--consul-routes x", "--consul-routes says nothing without --consul"),
        ("--kubernetes-pods", "--kubernetes-pods says nothing without --kubernetes"),
        ("", "there is nothing to"),
    ],
)
def test_what_says_nothing_by_itself_says_what_is_lacking(command: str, arguments: str, said: str) -> None:
    result = CliRunner().invoke(main, [command, *arguments.split()])
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kubeconfig", "nowhere"], "kubeconfig nowhere: no such file"),
        (["--kubeconfig", "config", "--kubernetes-context", "tset"], "no context 'tset'; there are: test"),
    ],
)
def test_a_kubeconfig_that_is_not_there_ends_serve(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump(KUBECONFIG))
    ports = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    done = subprocess.run(
        [sys.executable, "-m", "swashplate", "serve", "--kubernetes", *ports, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert f"Error: kubeconfig {arguments[1]}: " in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    checked = CliRunner().invoke(
        main, ["check", "--kubernetes", "--kubeconfig", str(tmp_path / arguments[1]), *arguments[2:]]
    )
    assert checked.exit_code == 2


async def test_what_an_earlier_life_left_is_served_without_its_kubeconfig(tmp_path: Path) -> None:
    service = a_service("checkout", "10.0.0.1")
    with LastGoodStore(tmp_path / "state") as store:
        registry = Registry(["kubernetes"], lambda _: None, lambda: 0.0)
        registry.feed("kubernetes").publish({service.name: service}, Evidence.LIVE)
        await KeptServices(store, KIND).keep(registry.feed("kubernetes"))
    settings = {"services": None, "routes": None, "kubernetes": True, "kubeconfig": tmp_path / "nowhere"}
    async with Site(tmp_path, {**settings, "state": tmp_path / "state"}).running() as here:
        (source,) = here.plane.status().sources
        assert source.services == 1
