"""`swashplate render`: from files exactly what a running server would send, and from a running server itself."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from swashplate.address import Address
from swashplate.admin import AdminServer
from swashplate.cli import main
from tests.swashplate.site import BROKEN, ROUTES, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write_all()
    return site


def render(site: Site, *arguments: str) -> Result:
    given = ["--services", str(site.root / "services.yaml"), "--routes", str(site.root / "routes")]
    return CliRunner().invoke(main, ["render", *given, *arguments])


def rendered(site: Site, *arguments: str) -> dict[str, Any]:
    result = render(site, "--node", "n", *arguments)
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = yaml.safe_load(result.stdout)
    return data


def test_yaml_and_json_say_the_same(site: Site) -> None:
    assert json.loads(render(site, "--node", "n", "-o", "json").stdout) == rendered(site)
    assert list(rendered(site)) == ["clusters", "endpoints", "listeners", "routes", "runtimes"]


def test_it_is_what_a_running_server_has(site: Site) -> None:
    async def asked() -> dict[str, Any]:
        async with site.running() as here:
            return dict(here.config())

    assert asyncio.run(asked()) == rendered(site)


def test_of_a_running_server(site: Site) -> None:
    async def asked() -> Result:
        async with site.running() as here:
            admin = AdminServer(here.plane, here.metrics)
            address = await admin.start(Address("127.0.0.1", 0))
            arguments = ["render", "--server", str(address), "--node", "n", "--envoy-version", "1.36", "-o", "json"]
            try:
                return await asyncio.to_thread(CliRunner().invoke, main, arguments)
            finally:
                await admin.stop()

    result = asyncio.run(asked())
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == rendered(site, "--envoy-version", "1.36")


def test_an_older_envoy_gets_it_in_an_older_way(site: Site) -> None:
    site.write(
        "routes/checkout.yaml",
        ROUTES.replace("rules:", "rules:\n- {name: testers, match: [{cookies: {who: me}}], to: canary}"),
    )
    assert rendered(site)["routes"] != rendered(site, "--envoy-version", "1.36")["routes"]


def test_a_broken_file_is_told_and_the_rest_is_rendered(site: Site) -> None:
    site.write("routes/checkout.yaml", BROKEN)
    result = render(site, "--node", "n")
    assert result.exit_code == 0
    assert "checkout.yaml:6:7: error R001" in result.stderr
    assert "web" in {cluster["name"] for cluster in yaml.safe_load(result.stdout)["clusters"]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--node", "n"], "there is nothing to render"),
        (["--services", "x.yaml"], "Missing option '--node'"),
        (["--node", "n", "--services", "/no/such"], "/no/such: No such file or directory"),
        (["--node", "n", "--services", "x.yaml", "--envoy-version", "1.2"], "Envoy 1.2 is not supported"),
        (["--node", "n", "--server", "127.0.0.1:1"], "cannot connect: Connection refused"),
    ],
)
def test_what_cannot_be_rendered(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["render", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr
