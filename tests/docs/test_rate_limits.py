"""The guide to the rate limit service: what it shows is what commands say, and what it maps exists."""

import asyncio
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

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
