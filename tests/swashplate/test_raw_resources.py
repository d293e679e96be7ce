"""Resource files through the whole program: served alone or beside, kept, confirmed, shown without secrets."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from swashplate.cli import main
from tests.swashplate.site import Running, Site, until
from xds.resources import types

SECRET = {"@type": types.SECRET, "name": "s", "tls_certificate": {"private_key": {"inline_string": "hush"}}}


def cluster(name: str, **fields: Any) -> dict[str, Any]:
    return {"@type": types.CLUSTER, "name": name, "connect_timeout": "1s", **fields}


def write(site: Site, *resources: object, file: str = "raw.yaml", **more: object) -> None:
    (site.root / "resources").mkdir(exist_ok=True)
    site.write(f"resources/{file}", json.dumps({**more, "resources": resources}))


def settings(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {"resources": tmp_path / "resources", **more}


@pytest.fixture
def alone(tmp_path: Path) -> Site:
    return Site(tmp_path, settings(tmp_path, services=None, routes=None))


@pytest.fixture
def beside(tmp_path: Path) -> Site:
    site = Site(tmp_path, settings(tmp_path, routes=tmp_path / "routes"))
    site.write_all()
    return site


@pytest.fixture
def kept(tmp_path: Path) -> Site:
    return Site(tmp_path, settings(tmp_path, services=None, routes=None, state=tmp_path / "state"))


def names(here: Running) -> dict[str, list[str]]:
    return {kind: [one.get("name") for one in found] for kind, found in here.config().items() if found}


class TestServing:
    async def test_alone(self, alone: Site) -> None:
        write(alone, cluster("a"))
        async with alone.running() as here:
            assert names(here) == {"clusters": ["a"]}
            write(alone, cluster("a"), cluster("b"))
            await until(lambda: names(here) == {"clusters": ["a", "b"]})
            (source,) = here.plane.status().sources
            assert (source.kind, source.state, source.services) == ("resources", "fresh", 2)

    async def test_beside_services(self, beside: Site) -> None:
        write(beside, cluster("checkout", alt_stat_name="mine"), cluster("z"))
        async with beside.running() as here:
            found = {one["name"]: one for one in here.config()["clusters"]}
            assert found.keys() == {"checkout", "checkout/canary", "checkout/stable", "web", "z"}
            assert found["checkout"]["alt_stat_name"] == "mine"
            assert here.config()["listeners"]
            (warning,) = here.plane.status().problems
            assert (warning.code, warning.severity) == ("X011", "warning")

    async def test_for_some_nodes(self, alone: Site) -> None:
        write(alone, cluster("a"), nodes={"clusters": ["edge"]})
        async with alone.running() as here:
            assert here.config("n", "inner") == {}
            assert [one["name"] for one in here.config("n", "edge")["clusters"]] == ["a"]

    async def test_a_bad_resource_is_told_and_keeps_its_last_version(self, alone: Site) -> None:
        write(alone, cluster("a"), cluster("b"))
        async with alone.running() as here:
            with capture_logs() as lines:
                write(alone, cluster("a", typo=1), cluster("c"))
                await until(lambda: names(here) == {"clusters": ["a", "c"]})
                await until(lambda: lines)
            assert any(line.get("code") == "X001" for line in lines)
            assert not here.plane.status().in_force

    async def test_a_path_that_does_not_exist_yet(self, alone: Site) -> None:
        async with alone.running(ready=False) as here:
            assert here.plane.unready()
            write(alone, cluster("a"))
            await until(lambda: not here.plane.unready())
            assert names(here) == {"clusters": ["a"]}


class TestRestart:
    async def test_what_was_good_of_each_resource_is_kept(self, kept: Site) -> None:
        write(kept, cluster("a"), cluster("b"))
        async with kept.running() as here:
            write(kept, cluster("a", typo=1), cluster("c"))
            await until(lambda: names(here) == {"clusters": ["a", "c"]})
        async with kept.running(ready=False) as here:
            assert names(here) == {"clusters": ["a", "c"]}
            await until(lambda: here.plane.status().problems)
            assert names(here) == {"clusters": ["a", "c"]}

    async def test_a_file_that_is_missing_is_held_until_confirmed(self, kept: Site) -> None:
        write(kept, cluster("a"))
        async with kept.running():
            pass
        (kept.root / "resources" / "raw.yaml").unlink()
        async with kept.running() as here:
            await until(lambda: here.plane.status().sources[0].held)
            assert names(here) == {"clusters": ["a"]}
            with pytest.raises(LookupError, match="holds no removal"):
                await here.plane.confirm("resource-files", "checkout")
            assert await here.plane.confirm("resource-files", None) == (str(kept.root / "resources" / "raw.yaml"),)
            await until(lambda: names(here) == {})


class TestSecrets:
    async def test_are_shown_nowhere(self, alone: Site) -> None:
        with capture_logs() as lines:
            write(alone, SECRET, cluster("a", typo=1))
            async with alone.running() as here:
                config = await here.plane.config("n", None, None)
                write(alone, {**SECRET, "tls_certificate": {"private_key": {"inline_string": ["hush"]}}})
                await until(lambda: len(lines) > 3)
                status = here.plane.status().model_dump_json()
        assert config["secrets"] == [
            {"name": "s", "tls_certificate": {"private_key": {"inline_string": "[redacted]"}}}
        ]
        assert "X001" in status
        assert "hush" not in status + json.dumps(lines, default=str)

    def test_not_by_render_nor_check(self, alone: Site) -> None:
        write(alone, SECRET)
        for command in (["render", "--node", "n"], ["check", "--no-envoy"]):
            done = CliRunner().invoke(main, [*command, "--resources", str(alone.root / "resources")])
            assert done.exit_code == 0
            assert "hush" not in done.output


class TestRotor:
    async def test_static_resources_and_the_template(self, tmp_path: Path) -> None:
        file = tmp_path / "static.yaml"
        site = Site(tmp_path, {"rotor_static": file, "routes": tmp_path / "routes"})
        site.write_all()
        document = {"clusters": [{"name": "mine"}], "cluster_template": {"connect_timeout": "7s"}}
        site.write("static.yaml", json.dumps(document))
        async with site.running() as here:
            timeouts = {one["name"]: one.get("connect_timeout") for one in here.config()["clusters"]}
            assert timeouts == {
                "checkout": "7s",
                "checkout/canary": "7s",
                "checkout/stable": "7s",
                "mine": None,
                "web": "7s",
            }
            site.write("static.yaml", json.dumps({"clusters": [{"name": "mine"}]}))
            await until(lambda: here.config()["clusters"][0]["connect_timeout"] != "7s")

    async def test_overwriting(self, tmp_path: Path) -> None:
        site = Site(tmp_path, {"rotor_static": tmp_path / "static.yaml", "rotor_static_conflicts": "overwrite"})
        site.write_all()
        site.write("static.yaml", json.dumps({"listeners": [{"name": "mine"}]}))
        async with site.running() as here:
            assert names(here)["listeners"] == ["mine"]
            assert "web" in names(here)["clusters"]


class TestCheck:
    def check(self, root: Path, *more: str) -> Any:
        return CliRunner().invoke(main, ["check", "--resources", str(root / "resources"), *more])

    def test_a_real_envoy_is_asked_for_each_kind_of_node(self, alone: Site) -> None:
        write(alone, cluster("a"))
        write(alone, cluster("b", dns_refresh_rate="0.0000001s"), file="edge.yaml", nodes={"clusters": ["edge"]})
        done = self.check(alone.root)
        assert done.exit_code == 1
        assert "as a node of edge" in done.stdout

    def test_what_is_in_bootstraps_is_only_warned_about(self, alone: Site) -> None:
        filters = [{"name": "t", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
            "stat_prefix": "t", "cluster": "elsewhere",
        }}]  # fmt: skip
        listener = {"@type": types.LISTENER, "name": "l", "filter_chains": [{"filters": filters}]}
        listener["address"] = {"socket_address": {"address": "127.0.0.1", "port_value": 1}}
        write(alone, listener)
        done = self.check(alone.root)
        assert (done.exit_code, "X009" in done.stdout) == (0, True)
        assert "1 warning" in done.stderr

    def test_every_problem_shows(self, alone: Site) -> None:
        write(alone, cluster("a", typo=1), cluster("b", lb_policy="NONE"))
        done = self.check(alone.root, "--no-envoy")
        assert (done.exit_code, done.stdout.count("X001")) == (1, 2)
