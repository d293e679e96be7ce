"""A broken edit changes nothing in Envoy, shows everywhere at once, and the next good edit is taken."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from swashplate.cli import main
from swashplate.status import ProblemReport
from tests.e2e.harness.load import Answer
from tests.e2e.harness.site import Site, write
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

AT_ONCE_S = 2.0

GOOD = """\
version: 1
service: checkout
subsets:
  stable: {version: v41}
  canary: {version: v42}
rules:
- name: testers
  match: [{headers: {x-tester: "1"}}]
  to: canary
- name: main
  to: {stable: 100%}
  headers: {response: {set: {x-edit: "EDIT"}}}
"""

ANOTHER = """\
version: 1
service: another
hosts: [another.internal]
rules: [{name: main, to: {all: 100%}}]
subsets: {all: {app: another}}
"""


def good(edit: int) -> str:
    return GOOD.replace("EDIT", str(edit))


BROKEN_ROUTES = {
    "no YAML": good(9) + "rules: [",
    "an empty file": "",
    "an unknown key": good(9).replace("headers: {response", "header: {response"),
    "a duplicate key": good(9) + "version: 1\n",
    "a sum that is not 100": good(9).replace("{stable: 100%}", "{stable: 90%, canary: 20%}"),
    "an unknown subset": good(9).replace("{stable: 100%}", "{stabel: 100%}"),
    "a catch-all that is not last": good(9).replace('  match: [{headers: {x-tester: "1"}}]\n', ""),
    "a wrong type": good(9).replace("{stable: 100%}", "5"),
    "a regex that is not RE2": good(9).replace('{x-tester: "1"}', "{x-tester: {regex: '(?=a)'}}"),
    "a timeout of zero": good(9) + "defaults: {timeout: 0s}\n",
    "a try that outlasts the whole": good(9)
    + "defaults: {timeout: 1s, retry: {attempts: 1, on: [5xx], per_try: 2s}}\n",
    "a host of an earlier file": good(9) + "hosts: [another.internal]\n",
    "a path that Envoy never sees": good(9).replace('headers: {x-tester: "1"}', "path: /a/../b"),
    "a patch with an unknown field": good(9) + "patches: [{cluster: canary, merge: {no_such_field: 1}}]\n",
    "a version of tomorrow": good(9).replace("version: 1", "version: 2"),
    "labels that no endpoint has": good(9).replace("version: v41", "version: v411"),
    "a feature that is not there": good(9).replace("  to: {stable: 100%}", "  to: {stable: 100%}\n  shift: {}"),
}
BROKEN_SERVICES = {
    "no YAML": "services: [",
    "an empty file": "",
    "no port": "version: 1\nservices: [{name: checkout, endpoints: [{address: 127.0.0.1, port: 70000}]}]\n",
    "an unknown key": "version: 1\nservices: [{name: checkout, endpoint: []}]\n",
}


async def test_a_broken_edit_changes_nothing_and_shows_everywhere(
    site: Site, envoy_binary: Path, variant: str
) -> None:
    route, services = site.routes / "checkout.yaml", site.services / "checkout.yaml"
    async with AsyncExitStack() as running:
        stable = await running.enter_async_context(Upstream("stable"))
        canary = await running.enter_async_context(Upstream("canary"))
        site.service("checkout", stable.endpoint(version="v41"), canary.endpoint(version="v42"))
        site.service("another", stable.endpoint(app="another"))
        write(route, good(0))
        site.route("another", ANOTHER)
        working_services = services.read_text()
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        await site.in_sync()

        async with site.load("checkout", connections=2, rate=40) as load:
            for number, (what, text) in enumerate(BROKEN_ROUTES.items(), start=1):
                config = await envoy.config()
                await _breaks(site, route, text, what)
                assert await envoy.config() == config, what
                since = time.monotonic()
                write(route, good(number))
                await load.in_force(shows(number), since)
                await _mended(site)
            for what, text in BROKEN_SERVICES.items():
                config = await envoy.config()
                await _breaks(site, services, text, what)
                assert await envoy.config() == config, what
                write(services, working_services)
                await _mended(site)
        assert load.failures() == []
        assert {answer.subset for answer in load.answers} == {"stable"}
        assert len(BROKEN_ROUTES) + len(BROKEN_SERVICES) >= 12


def shows(edit: int) -> Callable[[Answer], bool]:
    return lambda answer: answer.edit == str(edit)


async def _breaks(site: Site, file: Path, text: str, what: str) -> None:
    """Makes the broken edit; then log, status, metrics and `check` must name the file."""
    logged = len(site.control.text())
    start = time.monotonic()
    write(file, text)
    problems = await until(lambda: _problems(site), f"status to show {what}", AT_ONCE_S)
    assert {Path(problem.file).name for problem in problems} == {file.name}, what
    assert time.monotonic() - start < AT_ONCE_S
    assert not (await site.status()).in_force
    assert file.name in site.control.text()[logged:], what
    assert await _files_in_error(site) == 1, what

    arguments = ["check", "--services", str(site.services), "--routes", str(site.routes)]
    checked = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    assert checked.exit_code == 1, f"{what}: {checked.output}"
    assert re.search(rf"{file.parent.name}/{file.name}(:\d+:\d+)?: error ", checked.output), checked.output


async def _mended(site: Site) -> None:
    async def clean() -> bool:
        return not await _problems(site) and await _files_in_error(site) == 0

    await until(clean, "status to be clean again", AT_ONCE_S)


async def _problems(site: Site) -> list[ProblemReport]:
    return [problem for problem in (await site.status()).problems if problem.severity == "error"]


async def _files_in_error(site: Site) -> int:
    _, text = await site.get("/metrics")
    found = re.search(r"^swashplate_files_in_error (\S+)$", text, re.MULTILINE)
    assert found is not None
    return int(float(found.group(1)))
