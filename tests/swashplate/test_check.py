"""`swashplate check`: every problem of every file, in place; then a real Envoy's word; exit codes."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from swashplate.cli import main
from tests.swashplate.site import BROKEN, ROUTES, SERVICES, Site

TLS = """\
version: 1
service: web
rules: [{name: main, to: web}]
cluster: {tls: {ca: /not/on/this/machine.pem, cert: /nor/this.pem, key: /nor/that.pem, sni: web.internal}}
"""
REFUSED_BY_ENVOY = """\
version: 1
service: web
rules: [{name: main, to: web}]
patches:
- {cluster: web, merge: {type: ORIGINAL_DST, lb_policy: MAGLEV}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write_all()
    return site


def check(site: Site, *arguments: str | Path, routes: bool = True) -> Result:
    given = ["--services", str(site.root / "services.yaml")]
    if routes:
        given += ["--routes", str(site.root / "routes")]
    return CliRunner().invoke(main, ["check", *given, *map(str, arguments)])


def test_all_good(site: Site) -> None:
    result = check(site, "--no-envoy")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert result.stderr == "2 files, 0 errors, 0 warnings; no Envoy was asked\n"


def test_a_share_of_a_source_that_is_not_given_is_a_warning(site: Site) -> None:
    site.write("routes/checkout.yaml", ROUTES + "sources: {service-files: 90%, consul: 10%}\n")
    result = check(site, "--no-envoy")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "checkout.default: warning unknown-source: `sources` of its route file gives a share to consul, which is no "
        "source here; there are: service-files\n"
    )
    assert result.stderr.startswith("2 files, 0 errors, 1 warning;")
    assert check(site, "--no-envoy", "--consul", "http://127.0.0.1:8500").stdout == ""
    alone = CliRunner().invoke(main, ["check", "--no-envoy", str(site.root / "routes")])
    assert "unknown-source" not in alone.stdout, "nobody said what the server has"


def test_every_problem_of_every_file(site: Site) -> None:
    site.write("services.yaml", SERVICES.replace("endpoints:", "endpoint:", 1))
    site.write("routes/checkout.yaml", BROKEN.replace("name: main", "nam: main"))
    site.write("routes/web.yaml", "a: [")
    result = check(site, "--no-envoy")
    assert result.exit_code == 1
    for place in ("services.yaml:4:3: error F011", "checkout.yaml:5:3: error F011", "web.yaml:2:1: error F004"):
        assert place in result.stdout
    assert "^" in result.stdout
    assert "fix: did you mean `endpoints`?" in result.stdout


def test_a_warning_alone_is_no_failure(site: Site) -> None:
    idle = ROUTES.replace("90%", "100%").replace("10%", "0%")
    site.write("routes/checkout.yaml", idle.replace("version: v2", "version: v3"))
    result = check(site, "--no-envoy")
    assert result.exit_code == 0
    assert "warning" in result.stdout
    assert "canary" in result.stdout
    assert "0 errors, 1 warning" in result.stderr
    assert check(site, "--no-envoy", "--strict").exit_code == 1


def test_a_limit_that_cannot_share_its_counter_is_an_error_where_they_are_shared(site: Site) -> None:
    total = "{name: total, allow: 9/year, algorithm: token_bucket}"
    site.write("routes/checkout.yaml", f"{ROUTES}  rate_limits:\n  - {total}\n  - {{allow: 4/10 seconds}}\n")
    assert check(site, "--no-envoy").exit_code == 0
    result = check(site, "--no-envoy", "--ratelimit-keys", "compatible")
    assert result.exit_code == 1
    line = f"{ROUTES}  rate_limits:\n".count("\n") + 1
    assert f"checkout.yaml:{line}:{5 + total.index('algorithm')}: error L011: `algorithm`: " in result.stdout
    assert "the limit `default/checkout/total` is not in force" in result.stdout
    assert f"checkout.yaml:{line + 1}:13: error L011: `unit_multiplier`: " in result.stdout


def test_requests_that_would_go_to_nobody_are_a_failure(site: Site) -> None:
    site.write("routes/checkout.yaml", ROUTES.replace("version: v1", "version: v11"))
    result = check(site, "--no-envoy")
    assert result.exit_code == 1
    assert "error R030: no endpoint of `checkout.default` has the labels of `stable` (version: v11)" in result.stdout
    assert "fix: did you mean `version: v1`? endpoints have `version`: v1, v2" in result.stdout


def test_a_destination_that_is_neither_subset_nor_service(site: Site) -> None:
    site.write("routes/checkout.yaml", ROUTES.replace("stable: 90%", "stabel: 90%"))
    result = check(site, "--no-envoy")
    assert "stabel" in result.stdout


def test_files_are_checked_together_with_the_directory(site: Site, tmp_path: Path) -> None:
    """A change under review takes a service that another file has already; only both together show it."""
    other = tmp_path / "new.yaml"
    other.write_text(ROUTES)
    assert check(site, "--no-envoy", other, routes=False).exit_code == 0
    result = check(site, "--no-envoy", other)
    assert result.exit_code == 1
    assert "new.yaml" in result.stdout
    assert "routes/checkout.yaml" in result.stdout


def test_a_file_that_is_in_the_directory_is_checked_once(site: Site) -> None:
    result = check(site, "--no-envoy", site.root / "routes" / "checkout.yaml")
    assert result.exit_code == 0
    assert "2 files" in result.stderr


@pytest.mark.parametrize("name", [b"loop.yaml", b"caf\xe9.yaml"])
def test_a_file_that_cannot_be_read_is_a_problem(site: Site, name: bytes) -> None:
    os.symlink(name, os.fsencode(site.root / "routes") + b"/" + name)
    result = check(site, "--no-envoy")
    assert result.exit_code == 1
    assert "error F015" in result.stdout
    assert "3 files, 1 error" in result.stderr


def test_json(site: Site) -> None:
    site.write("routes/checkout.yaml", BROKEN)
    result = check(site, "--no-envoy", "-o", "json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["envoy"] is None
    (problem,) = data["problems"]
    assert (problem["code"], problem["severity"], problem["line"]) == ("R001", "error", 6)


@pytest.mark.envoy
def test_an_envoy_takes_it(site: Site, envoy_binary: Path) -> None:
    result = check(site, "--envoy", envoy_binary, "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["envoy"]["refusal"] is None


@pytest.mark.envoy
def test_files_of_tls_need_not_be_on_this_machine(site: Site, newest_envoy: Path) -> None:
    site.write("routes/web.yaml", TLS)
    result = check(site, "--envoy", newest_envoy)
    assert result.exit_code == 0, result.output


@pytest.mark.envoy
def test_an_envoy_refuses_it(site: Site, newest_envoy: Path) -> None:
    site.write("routes/web.yaml", REFUSED_BY_ENVOY)
    result = check(site, "--envoy", newest_envoy)
    assert result.exit_code == 1
    assert "refuses this: " in result.stdout
    assert f"look first at what has patches: {site.root}/routes/web.yaml" in result.stdout
    assert "1 error" in result.stderr


@pytest.mark.envoy
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (
            "{cluster: canary, merge: {connect_timeout: 0s}}",
            "the cluster `checkout/canary`: Cluster.ConnectTimeout: value must be greater than 0s",
        ),
        (
            "{virtual_host: true, merge: {retry_policy: {retry_on: x, retry_back_off: {base_interval: 0s}}}}",
            "the virtual host `egress/checkout`: RetryBackOff.BaseInterval: value must be greater than 0s",
        ),
    ],
)
def test_a_refusal_is_a_problem_of_the_patch_it_comes_from(
    site: Site, newest_envoy: Path, patch: str, said: str
) -> None:
    site.write(
        "routes/checkout.yaml",
        f"{ROUTES}patches:\n- {{cluster: stable, merge: {{alt_stat_name: x}}}}\n"
        f"- {{route: main, merge: {{decorator: {{operation: x}}}}}}\n- {patch}\n",
    )
    result = check(site, "--envoy", newest_envoy)
    assert result.exit_code == 1
    assert "checkout.yaml:10:3: error R032: Envoy 1." in result.stdout
    assert said in result.stdout
    assert len(result.stdout.splitlines()) == 3
    problems = json.loads(check(site, "--envoy", newest_envoy, "-o", "json").stdout)["problems"]
    assert [problem["code"] for problem in problems] == ["R032"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--services", "/no/such"], "/no/such: No such file or directory"),
        (["/no/such"], "/no/such: No such file or directory"),
        ([], "there is nothing to check"),
        (["--envoy", "/no/envoy", "."], "/no/envoy cannot be run"),
    ],
)
def test_what_cannot_be_checked(arguments: list[str], said: str, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    result = CliRunner().invoke(main, ["check", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr


def test_settings_file_says_what_to_check(site: Site) -> None:
    site.write("swashplate.yaml", "services: services.yaml\nroutes: routes\n")
    result = CliRunner().invoke(main, ["check", "--no-envoy", "--config", str(site.root / "swashplate.yaml")])
    assert result.exit_code == 0, result.output
    assert "2 files" in result.stderr


def test_registries_are_not_asked_and_what_they_may_know_is_not_missed(site: Site) -> None:
    site.write("routes/checkout.yaml", ROUTES.replace("canary: 10%", "elsewhere: 10%"))
    assert check(site, "--no-envoy").exit_code == 1
    result = check(site, "--no-envoy", "--kubernetes")
    assert result.exit_code == 0, result.output
    assert result.stderr == "2 files, 0 errors, 0 warnings; no Envoy was asked; no registry was asked\n"


def test_settings_of_registries_are_checked(tmp_path: Path) -> None:
    contradicting = CliRunner().invoke(main, ["check", "--kubernetes", "--lighthouse", "--no-envoy"])
    assert contradicting.exit_code == 2
    assert "--lighthouse says nothing without --consul" in contradicting.stderr
    token = str(tmp_path / "token")
    arguments = ["check", "--consul", "http://127.0.0.1:8500", "--consul-token-file", token, "--no-envoy"]
    unreadable = CliRunner().invoke(main, arguments)
    assert unreadable.exit_code == 2
    assert f"{token}: No such file" in unreadable.stderr
    Path(token).write_text("secret")
    assert CliRunner().invoke(main, arguments).exit_code == 0
