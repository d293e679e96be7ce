"""`swashplate ratelimit`: what its commands say, and their exit codes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from swashplate.cli import main
from swashplate.ratelimit_contradictions import limit_contradictions
from swashplate.settings import Settings
from tests.e2e.harness.wait import until
from tests.swashplate.ratelimit_site import BROKEN, DEADLINE_S, SHOP, Running, Site

CLUSTER = "redis+cluster://127.0.0.1:7000"
SPARING = """\
domain: shop
descriptors:
  - key: client
    rate_limit: {unit: hour, requests_per_unit: 3, charge_denied: false}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write()
    return site


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["ratelimit", *map(str, arguments)])


# check


def test_good_files_are_counted(site: Site) -> None:
    result = run("check", site.limits)
    assert result.exit_code == 0
    assert result.stderr == "1 file, 1 domain, 3 limits, 0 errors, 0 warnings\n"
    assert result.stdout == ""


def test_every_problem_of_every_file_is_shown(site: Site) -> None:
    site.write(BROKEN)
    site.write(BROKEN.replace("shop", "other").replace("key", "kye"), "other.yaml")
    result = run("check", site.limits)
    assert result.exit_code == 1
    assert f"{site.limits}/shop.yaml:4:" in result.stdout
    assert "did you mean `key`?" in result.stdout
    assert result.stdout.count("error L004") == 2


def test_directories_are_apart_and_files_of_one_are_not(site: Site, tmp_path: Path) -> None:
    other = tmp_path / "production"
    other.mkdir()
    (other / "shop.yaml").write_text(SHOP)
    assert run("check", site.limits, other).exit_code == 0
    site.write(SHOP, "second.yaml")
    result = run("check", site.limits)
    assert result.exit_code == 1
    assert "L002" in result.stdout
    assert "--merge-domains" in result.stdout
    for merged in (["--merge-domains", "true"], ["--merge-domains"], ["--merge-domains=true"]):
        assert "L003" in run("check", *merged, site.limits).stdout


def test_nothing_to_check_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run("check", tmp_path / "empty")
    assert result.exit_code == 1
    assert "there is no limit file here" in result.stderr
    assert run("check", tmp_path / "absent").exit_code == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], None),
        (["--redis", "redis://127.0.0.1"], None),
        (["--redis", CLUSTER], "L022"),
        (["--redis", CLUSTER, "--hash-tag", "domain"], None),
        (["--redis", "redis://127.0.0.1", "--redis-per-second", "redis://127.0.0.1/1"], "L022"),
        (["--keys", "compatible", "--redis", "redis://127.0.0.1"], "L011"),
    ],
)
def test_what_the_store_cannot_keep_is_an_error(site: Site, options: list[str], code: str | None) -> None:
    site.write(SPARING)
    result = run("check", *options, site.limits)
    assert result.exit_code == (0 if code is None else 1)
    assert code is None or f"shop.yaml:4:{'1' if code == 'L022' else ''}" in result.stdout
    assert code is None or code in result.stdout


def test_warnings_fail_where_the_check_is_strict(site: Site) -> None:
    site.write("domain: shop\ndescriptors: []\n")
    for flags, code in ([], 0), (["--strict"], 1):
        result = run("check", *flags, site.limits)
        assert result.exit_code == code
        assert "0 errors, 1 warning" in result.stderr
    site.write()
    assert run("check", "--strict", site.limits).exit_code == 0


def test_check_as_json(site: Site) -> None:
    site.write(BROKEN)
    result = run("check", "-o", "json", site.limits)
    found = json.loads(result.stdout)
    assert found["files"] == 1
    assert [problem["code"] for problem in found["problems"]] == ["L004"]


# explain


def test_explain_from_files(site: Site) -> None:
    result = run("explain", "--config", site.limits, "shop", "user=bob", "path=/a")
    assert result.exit_code == 0
    assert "limit user_bob.path: 10 an hour" in result.stdout
    result = run("explain", "--config", site.limits, "shop", "user=eve")
    assert result.exit_code == 1
    assert "there is no limit" in result.stdout
    found = json.loads(run("explain", "--config", site.limits, "-o", "json", "shop", "client=web").stdout)
    assert found["limits"][0]["path"] == "client"


REPLACING = """\
domain: shop
descriptors:
  - key: client
    rate_limit: {unit: hour, requests_per_unit: 3, name: basic}
  - key: gold
    rate_limit: {unit: hour, requests_per_unit: 9, replaces: [{name: basic}]}
"""


def test_explain_says_what_denies_nothing_and_what_is_replaced(site: Site) -> None:
    site.write(REPLACING)
    asked = ("explain", "--config", site.limits, "shop", "client=web", "+", "gold=1")
    assert run(*asked).stdout.endswith("limit client is not counted: limit gold replaces `basic`\n")
    assert "nothing is denied" in run(*asked, "--shadow-mode").stdout
    found = json.loads(run(*asked, "--shadow-mode", "-o", "json").stdout)
    assert (found["shadow_mode"], len(found["limits"]), len(found["descriptors"])) == (True, 2, 2)
    result = run("explain", "--config", site.limits, "shop", "client=web", "+")
    assert result.exit_code == 2
    assert "`+` stands between two descriptors" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shop", "client=web"], "give --config or --server"),
        (["--config", "limits", "shop", "client"], "write KEY=VALUE"),
    ],
)
def test_explain_needs_a_question(arguments: list[str], said: str) -> None:
    result = run("explain", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


# A server that runs


def asking(here: Running) -> Callable[..., "asyncio.Task[Result]"]:
    """Commands ask on an event loop of their own."""

    def ask(command: str, *arguments: object) -> "asyncio.Task[Result]":
        words = (*command.split(), "--server", here.http, *arguments)
        return asyncio.create_task(asyncio.to_thread(run, *words))

    return ask


async def test_a_server_explains_and_counts(site: Site) -> None:
    async with site.serving(ratelimit_counters=True) as here:
        await here.ready()
        ask = asking(here)
        assert "limit client: 3 an hour" in (await ask("explain", "shop", "client=web")).stdout
        assert "no counter" in (await ask("counters list", "shop")).stderr
        await here.ask({"client": "web"}, {"user": "bob", "path": "/a"})
        listed = (await ask("counters list", "shop")).stdout
        assert sorted(line.split()[0] for line in listed.splitlines()[1:]) == ["client=web", "user=bob"]
        shown = await ask("counters show", "shop", "client=web")
        assert shown.exit_code == 0
        assert shown.stdout.splitlines()[1].split()[:4] == ["client=web", "3600", "1", "3"]
        assert (await ask("counters show", "shop", "user=bob")).exit_code == 1
        assert (await ask("counters reset", "shop", "client=web")).stdout == "1 counter reset\n"
        assert (await ask("counters show", "shop", "client=web")).exit_code == 1
        assert (await ask("counters reset", "shop", "--all")).stdout == "1 counter reset\n"
        found = json.loads((await ask("counters list", "-o", "json", "shop")).stdout)
        assert found == {"counters": []}


async def test_a_server_says_in_what_mode_it_is_and_what_callers_get_without_its_store(site: Site) -> None:
    site.write(REPLACING)
    async with site.serving(ratelimit_shadow_mode=True) as here:
        await here.ready()
        words = ("shop", "client=web", "+", "gold=1")
        said = (await asking(here)("explain", *words)).stdout
        assert "limit client is not counted: limit gold replaces `basic`" in said
        assert "nothing is denied: the service is in shadow mode" in said
        assert json.loads((await asking(here)("explain", *words, "-o", "json")).stdout)["shadow_mode"] is True
    async with site.serving(redis="redis://127.0.0.1:1") as here:

        async def explained() -> bool:
            said = (await asking(here)("explain", "shop", "client=web")).stdout
            return "now counters cannot be asked, so the request gets no answer but UNAVAILABLE" in said

        await until(explained, "the store to be known to be away", within=DEADLINE_S)


async def test_a_domain_that_is_not_in_force_is_told_with_its_reason(site: Site) -> None:
    site.write(BROKEN.replace("shop", "extra"), "extra.yaml")
    because = (
        f"{site.limits}/extra.yaml describes the domain `extra` and has an error, so nothing of it is in force: "
    )
    place = f"{site.limits}/extra.yaml:4:24 L004"
    said = run("explain", "--config", site.limits, "extra", "client=web").stdout
    assert because + place in said
    assert "no file" not in said
    async with site.serving(ratelimit_counters=True) as here:
        await here.ready()
        ask = asking(here)
        assert because + place in (await ask("explain", "extra", "client=web")).stdout
        for command in ("counters list extra", "counters show extra client=web", "counters reset extra --all"):
            assert because + place in (await ask(command)).stderr
        nowhere = (await ask("counters list", "nodomain")).stderr
        assert nowhere == "no file describes the domain `nodomain`, so nothing is limited; there is `shop`\n"
        site.write(BROKEN)

        async def stale() -> bool:
            return "its last good version is in force" in (await ask("explain", "shop", "client=web")).stdout

        await until(stale, "an error of the domain", within=DEADLINE_S)


async def test_a_server_that_does_not_serve_counters_says_how_it_would(site: Site) -> None:
    async with site.serving() as here:
        result = await asking(here)("counters list", "shop")
    assert result.exit_code == 2
    assert "start with --counters" in result.stderr


async def test_a_server_without_limits_is_told_to_be_none_of_limits() -> None:
    async with TestServer(web.Application()) as other:
        for words in (("explain", "--server"), ("counters", "list", "--server")):
            result = await asyncio.to_thread(run, *words, f"127.0.0.1:{other.port}", "shop", "client=web")
            assert result.exit_code == 2
            assert "it serves no rate limits: give the address of --http" in result.stderr


def test_a_reset_of_everything_is_asked_for() -> None:
    for arguments in (["shop"], ["shop", "client=web", "--all"]):
        result = run("counters", "reset", *arguments)
        assert result.exit_code == 2
        assert "say which" in result.stderr


# serve


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give --config"),
        (["--workers", "2"], "--workers: processes cannot share counters in memory"),
        (["--counters", "--http", "0.0.0.0:8080"], "--counters lets everybody reset counters"),
        (["--tls-key", "key.pem"], "--tls-key says nothing without --tls-cert"),
        (["--redis", "http://127.0.0.1"], "--redis: 'http://127.0.0.1' is no URL of a store"),
        (["--redis-timeout", "5s"], "--redis-timeout says nothing without --redis"),
        (["--keys", "compatible"], "--keys compatible shares counters in a Redis"),
        (["--key-prefix", "a{b}"], "--key-prefix: 'a{b}' has braces"),
        (["--key-prefix", "a}"], "--hash-tag says what chooses it"),
        (["--key-prefix", "a\nb"], "--key-prefix: this has what cannot be seen"),
        (["--limit-header", "Rate Limit"], "--limit-header: no header can have this name"),
        (["--reset-header", ""], "--reset-header: no header can have this name"),
        (["--reset-header", "ratelimit-LIMIT"], "two have one name"),
        (["--near-limit-ratio", "2"], "--near-limit-ratio"),
        (["--listen", "nowhere"], "--listen: 'nowhere' is not host:port"),
    ],
)
def test_settings_that_do_not_go_together_are_told_before_anything_starts(
    site: Site, arguments: list[str], said: str
) -> None:
    result = run("serve", *(["--config", site.limits] if arguments else []), *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_braces_that_envoyproxy_ratelimit_has_are_shared() -> None:
    settings = Settings(redis="redis://x", ratelimit_keys="compatible", ratelimit_key_prefix="{all}")
    assert list(limit_contradictions(settings)) == []


def test_settings_come_from_the_environment_and_a_file(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("ratelimit_counters: true\nratelimit_http: 0.0.0.0:1\nratelimit_config: limits\n")
    result = CliRunner().invoke(
        main, ["ratelimit", "serve", "--settings", str(file)], env={"SWASHPLATE_RATELIMIT_HTTP": "0.0.0.0:2"}
    )
    assert "who reaches 0.0.0.0:2" in result.stderr
