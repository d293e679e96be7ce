"""Settings: which source wins, what a wrong value is answered, and that every setting is documented."""

import os
from datetime import timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from swashplate.address import Address
from swashplate.contradictions import contradictions
from swashplate.options import with_settings
from swashplate.settings import ENVIRONMENT_ONLY, Settings, default_text, environment_variable, flag

EVERY = tuple(Settings.model_fields)


@click.command()
@with_settings(*EVERY)
@click.pass_context
def probe(ctx: click.Context, settings: Settings) -> None:
    ctx.find_root().obj.append(settings)


def invoke(*arguments: str, env: dict[str, str] | None = None) -> tuple[Result, Settings | None]:
    got: list[Settings] = []
    result = CliRunner().invoke(probe, arguments, env=env, obj=got)
    return result, got[0] if got else None


def settings(*arguments: str, env: dict[str, str] | None = None) -> Settings:
    result, got = invoke(*arguments, env=env)
    assert got is not None, result.output
    return got


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "etc" / "swashplate.yaml"
    file.parent.mkdir()
    file.write_text(
        "log_level: debug\nnamespace: from-file\nlisten: 127.0.0.1:1\nroutes: routes\nstate: /var/lib/s\n"
    )
    return file


@pytest.mark.parametrize(
    ("flags", "variables", "with_file", "expected"),
    [
        (["--namespace", "from-flag"], {"SWASHPLATE_NAMESPACE": "from-env"}, True, "from-flag"),
        ([], {"SWASHPLATE_NAMESPACE": "from-env"}, True, "from-env"),
        ([], {}, True, "from-file"),
        ([], {}, False, "default"),
        # Giving the default is giving a value: it wins over the file too.
        (["--namespace", "default"], {}, True, "default"),
        # An empty variable is what orchestrators make of an unset one.
        ([], {"SWASHPLATE_NAMESPACE": ""}, True, "from-file"),
    ],
)
def test_precedence(
    config: Path, flags: list[str], variables: dict[str, str], with_file: bool, expected: str
) -> None:
    file = ["--config", str(config)] if with_file else []
    assert settings(*flags, *file, env=variables).namespace == expected


def test_sources_are_combined(config: Path) -> None:
    got = settings(
        "--listen", "[::]:2", env={"SWASHPLATE_CONFIG": str(config), "SWASHPLATE_DEBOUNCE_LIMIT": "1s500ms"}
    )
    assert got.listen == Address("::", 2)
    assert got.debounce_limit == timedelta(seconds=1.5)
    assert got.log_level == "debug"
    assert got.admin == Address("127.0.0.1", 18001)


def test_paths_in_a_file_are_relative_to_it(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(config.parent.parent)
    got = settings("--config", "etc/swashplate.yaml", "--services", "here.yaml")
    assert got.routes == Path("etc/routes")
    assert got.state == Path("/var/lib/s")
    assert got.services == Path("here.yaml")


def test_a_path_that_cannot_be_read_is_no_reason_not_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be readable later, and a state directory may have something to serve meanwhile."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert settings("--services", str(tmp_path), "--routes", str(tmp_path)).routes == tmp_path


def test_problems_of_a_file_are_all_shown_in_place(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("log_level: loud\nlistne: 127.0.0.1:1\nadmin: 18001\nroutes: 5\n")
    result, got = invoke("--config", str(file))
    assert got is None
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {file}:1:12: error F013: this must be `debug`, `info`, `warning` or `error`\n"
        "  log_level: loud\n"
        "             ^^^^\n"
        f"{file}:2:1: error F011: the key `listne` is not known here\n"
        "  listne: 127.0.0.1:1\n"
        "  ^^^^^^\n"
        "  fix: did you mean `listen`?\n"
        f"{file}:3:8: error F013: this must be an address: host:port, such as 127.0.0.1:18000 or [::1]:18000\n"
        "  admin: 18001\n"
        "         ^^^^^\n"
        f"{file}:4:9: error F013: this must be a path\n"
        "  routes: 5\n"
        "          ^\n"
        "  fix: write it as text\n"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file or directory"), (b"a: [", "F004"), (b"\xff", "F001"), (b"- a", "a mapping"), (b"", "F003")],
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "s.yaml"
    if content is not None:
        file.write_bytes(content)
    result, _ = invoke("--config", str(file))
    assert result.exit_code == 2
    assert said in result.stderr
    assert str(file) in result.stderr


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["--listen", "nowhere"], {}, "--listen: 'nowhere' is not host:port, such as 127.0.0.1:18000 or"),
        ([], {"SWASHPLATE_LISTEN": "nowhere"}, "SWASHPLATE_LISTEN: 'nowhere' is not host:port"),
        (["--debounce-quiet", "100"], {}, "--debounce-quiet: `100` is not a duration; write a number with its unit"),
        (["--debounce-quiet", "1s"], {}, "--debounce-limit: this must be at least debounce_quiet, which is 1s\n"),
        (["--namespace", "a/b"], {}, "--namespace: `a/b` is no namespace; use letters, digits, `-` and `_`"),
        (["--namespace", ""], {}, "--namespace: "),
        (["--cluster-domain", "a b"], {}, "--cluster-domain: `a b` is no domain"),
        (["--routes", "caf\udce9"], {}, "--routes: `caf\\xe9` is not UTF-8"),
        (["--egress", "localhost:1"], {}, "--egress: `localhost` is a name, and Envoy listens at an IP address"),
        (["--ingress", "localhost:1"], {}, "--ingress: `localhost` is a name"),
        (["--log-level", "loud"], {}, "--log-level: "),
        (["--no-such"], {}, "No such option '--no-such'"),
    ],
)
def test_a_wrong_value_names_where_it_was_given(arguments: list[str], variables: dict[str, str], said: str) -> None:
    result, got = invoke(*arguments, env=variables)
    assert got is None
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("name", EVERY)
def test_every_setting_is_documented(name: str) -> None:
    help_text = " ".join(CliRunner().invoke(probe, ["--help"], terminal_width=1000).output.split())
    description = Settings.model_fields[name].description
    assert description
    if name in ENVIRONMENT_ONLY:
        assert f"{flag(name)} " not in help_text
        return
    assert description in help_text
    assert flag(name) in help_text
    assert f"env var: {environment_variable(name)}" in help_text
    if (default := default_text(name)) is not None:
        assert f"default: {default}]" in help_text


def test_a_switch_needs_no_value_and_takes_one() -> None:
    assert settings("--kubernetes", "--namespace", "x").kubernetes
    assert not settings("--kubernetes", "false").kubernetes
    assert settings(env={"SWASHPLATE_KUBERNETES": "true"}).kubernetes


def test_lists_and_shares_in_a_flag_and_in_a_file(config: Path) -> None:
    config.write_text("kubernetes_namespaces: [a, b]\nsource_weights: {kubernetes: 90, consul: 10%}\n")
    of_file = settings("--config", str(config))
    flags = settings("--kubernetes-namespaces", "a, b", "--source-weights", "kubernetes=90,consul=10")
    for got in (of_file, flags):
        assert got.kubernetes_namespaces == ("a", "b")
        assert got.source_weights == {"kubernetes": 90, "consul": 10}
    config.write_text("kubernetes_namespaces: a,b\n")
    assert settings("--config", str(config)).kubernetes_namespaces == ("a", "b")


def test_a_token_comes_from_the_environment_alone(config: Path) -> None:
    got = settings("--consul", "http://127.0.0.1:8500", env={"SWASHPLATE_CONSUL_TOKEN": "s3cret"})
    assert got.consul_token == "s3cret"
    assert "s3cret" not in repr(got)
    assert "No such option" in invoke("--consul-token", "s3cret")[0].stderr
    config.write_text("consul_token: s3cret\n")
    refused = invoke("--config", str(config))[0].stderr
    assert "consul_token is taken from SWASHPLATE_CONSUL_TOKEN only, or from consul_token_file" in refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lighthouse"], "--lighthouse says nothing without --consul: give that too, or leave it out"),
        (["--consul-tag", "x"], "--consul-tag says nothing without --consul"),
        (["--consul-routes", "x"], "--consul-routes says nothing without --consul"),
        (["--consul", "http://c:1", "--lighthouse-discovery", "x"], "--lighthouse-discovery says nothing without"),
        (["--nelson"], "--nelson says nothing without --kubernetes"),
        (["--kubeconfig", "x"], "--kubeconfig says nothing without --kubernetes"),
        (["--kubernetes", "--kubernetes-pod-label", "x"], "says nothing without --kubernetes-pods"),
        (
            ["--kubernetes", "--kubernetes-namespaces", "a", "--kubernetes-namespace-selector", "b"],
            "both choose namespaces",
        ),
        (
            ["--kubernetes", "--kubernetes-namespaces", "shop,SHOP"],
            "SHOP cannot be a namespace's name in Kubernetes: did you mean shop?",
        ),
        (["--kubernetes", "--kubernetes-namespaces", "a_b"], "they have a-z, 0-9 and - only"),
        (["--consul", "nowhere"], "--consul: `nowhere` is no address of a Consul agent; write"),
        (["--consul", "http://c:1", "--consul-ca", "x"], "is no https address"),
        (["--consul", "https://c:1", "--consul-cert", "x"], "needs its key"),
        (["--services", "x", "--source-weights", "consul=1"], "no source `consul` of services; those that are given"),
        (["--consul", "http://c:1", "--source-weights", "consul=0"], "all shares are 0"),
    ],
)
def test_what_does_not_go_together_is_told_with_what_to_do(arguments: list[str], said: str) -> None:
    assert any(said in line for line in contradictions(settings(*arguments)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kubernetes", "--kubernetes-pods", "--kubernetes-pod-label", "x", "--kubernetes-pod-port", ""],
        ["--kubernetes", "--kubernetes-pod-labels", "false"],
        [
            "--consul",
            "https://c:1",
            "--consul-cert",
            "x",
            "--consul-key",
            "y",
            "--lighthouse",
            "--consul-routes",
            "r",
        ],
        ["--kubernetes", "--consul", "http://c:1", "--source-weights", "kubernetes=9,consul=1"],
        ["--services", "x", "--kubernetes", "false"],
    ],
)
def test_what_goes_together_is_not_complained_about(arguments: list[str]) -> None:
    assert list(contradictions(settings(*arguments))) == []


def test_defaults_are_read_back_as_they_are_written() -> None:
    written = {name: text for name in EVERY if (text := default_text(name)) is not None}
    assert Settings.model_validate(written) == Settings()
