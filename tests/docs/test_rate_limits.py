"""The guide to the rate limit service: what it shows is what commands say, and what it maps exists."""

import asyncio
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from click.testing import CliRunner

from mesh.rate_limit import AddressPart, HeaderPart, QueryPart
from ratelimit.counters.redis.settings import Topology, redis_settings
from swashplate.cli import main
from swashplate.ratelimit_settings import OF_HOST, OF_LIMITS, RATELIMIT_PREFIX
from swashplate.settings import environment_variable, flag
from tests.docs.pages import Page, words
from tests.swashplate.ratelimit_site import Site

GUIDE = Page("docs/guide/rate-limits.md")


async def test_the_session_is_what_the_commands_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    site = Site(Path())
    (file,) = (block for block in GUIDE.blocks if block.file == "limits/shop.yaml")
    site.write(file.text)
    (session,) = (block for block in GUIDE.blocks if block.language == "console")
    async with site.serving(ratelimit_counters=True) as here:
        await here.ready()
        for _ in range(5):
            await here.ask({"client": "web"})
        said = ""
        for line in session.text.splitlines():
            if line.startswith("$ "):
                told = words(line.replace("--server http://127.0.0.1:8080", "").removeprefix("$ "))[1:]
                result = await asyncio.to_thread(CliRunner().invoke, main, [*told, "--server", here.http])
                said += f"{line}\n{result.stdout}"
    assert _without_times(said) == _without_times(session.text)


def _without_times(text: str) -> str:
    """How long a counter has yet is the hour's business."""
    return re.sub(r" +\d+s$", " #", text, flags=re.MULTILINE)


def test_every_flag_that_a_variable_is_mapped_to_exists() -> None:
    rows = GUIDE.text.partition("| its variable | here |")[2]
    told = set(re.findall(r"`(--[\w-]+)", rows))
    flags = {flag(name, RATELIMIT_PREFIX) for name in (*OF_LIMITS, *OF_HOST, "log_level", "log_format")}
    assert told
    assert told <= flags
    variables = set(re.findall(r"`(SWASHPLATE_\w+)`", rows))
    assert variables <= {environment_variable(name) for name in OF_LIMITS}


VARIABLES = (Path(__file__).parent / "envoyproxy_ratelimit_variables.txt").read_text().split()
"""All that src/settings/settings.go of envoyproxy/ratelimit reads."""


@pytest.mark.parametrize("variable", VARIABLES)
def test_every_variable_of_envoyproxy_ratelimit_is_mapped(variable: str) -> None:
    rows = GUIDE.text.partition("| its variable | here |")[2].splitlines()
    told = {name for row in rows if row.startswith("| `") for name in re.findall(r"`([A-Z_*]+)`", row.split("|")[1])}
    again = variable.replace("REDIS_PERSECOND_", "REDIS_")  # one row says so of all of the pool's
    wanted = {variable, again} if "POOL" in variable or "PIPELINE" in variable else {variable}
    assert any(fnmatchcase(one, pattern) for one in wanted for pattern in told)


def test_urls_of_stores_are_understood() -> None:
    found = [redis_settings(url) for url in re.findall(r"--redis ((?:redis|unix)\S*://[^\s`]+)", GUIDE.text)]
    assert {each.topology for each in found} == set(Topology)
    assert "mymaster" in {each.master for each in found}


def test_keys_of_entries_are_those_of_descriptors() -> None:
    rows = Page("docs/guide/routes.md").text.partition("| `per` | key of the entry |")[2]
    for part in (HeaderPart("x-api-key"), QueryPart("page"), AddressPart(), AddressPart(24, 64)):
        assert f"`{part.key}`" in rows
