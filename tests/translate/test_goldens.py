"""What a node gets, feature by feature: review a change by reading the difference of `golden/*.out.yaml`.

An input has `services` as in a service file, `routes` (route files), and, where they matter, `broken` (services whose
route file never was good), `callers` (whose splits are `to`, weights by service), `node` and `settings`.
`pytest tests/translate --update-golden` writes the outputs anew.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from discovery.files.parse import parse as parse_services
from mesh.mesh import Mesh
from mesh.rule import BrokenRoutes
from mesh.service import ServiceName
from routes.parse import parse as parse_routes
from tests.translate.meshes import NEWEST, OLDEST, caller, composed
from tests.translate.static_envoy import messages, refusal, static_config
from xds.resources import types
from xds.resources.node import Node, Version
from xds.resources.snapshot import Snapshot
from xds.translate.composer import Composer
from xds.translate.finding import Code
from xds.translate.settings import RateLimiting, TranslationSettings

DIRECTORY = Path(__file__).parent / "golden"
NAMES = sorted(path.name.removesuffix(".in.yaml") for path in DIRECTORY.glob("*.in.yaml"))
VERSIONS = {"newest": NEWEST, "oldest": OLDEST}


class Case:
    """One input: its mesh, and the node that looks at it."""

    def __init__(self, name: str, version: Version | None = None) -> None:
        self.input: dict[str, Any] = yaml.safe_load((DIRECTORY / f"{name}.in.yaml").read_text())
        settings = {key: _setting(value) for key, value in self.input.get("settings", {}).items()}
        assert settings.keys() <= {field.name for field in fields(TranslationSettings)}
        self.composer: Composer = composed(self._mesh(), TranslationSettings(**settings))
        node = {"id": "golden", "version": "newest", **self.input.get("node", {})}
        node["version"] = version or VERSIONS[node["version"]]
        self.snapshot: Snapshot = self.composer.view(Node(**node))

    def _mesh(self) -> Mesh:
        document = {"version": 1, "services": self.input.get("services", [])}
        services = parse_services(yaml.safe_dump(document), "services.yaml", default_namespace="default")
        assert services.value is not None, services.problems
        routes = {}
        for file in self.input.get("routes", []):
            parsed = parse_routes(yaml.safe_dump({"version": 1, **file}), f"routes/{file['service']}.yaml")
            assert parsed.routes is not None, parsed.problems
            routes[parsed.routes.service] = parsed.routes
        broken = [BrokenRoutes(ServiceName("default", name), "R000") for name in self.input.get("broken", [])]
        callers = [caller(**written) for written in self.input.get("callers", [])]
        return Mesh().with_changes(
            services.value,
            {**routes, **{each.service: each for each in broken}},
            {each.cluster: each for each in callers},
        )

    def output(self) -> dict[str, Any]:
        """The resources of the snapshot, and the warnings. What no mesh changes is shown in `empty` alone."""
        shown = {
            types.SHORT[url]: list(messages(self.snapshot, url).values())
            for url in (types.CLUSTER, types.ENDPOINT, types.LISTENER, types.ROUTE, types.RUNTIME)
        }
        if self.input.get("services") or self.input.get("routes"):
            shown["LDS"] = [listener for listener in shown["LDS"] if listener["name"] != "egress"]
            del shown["RTDS"]
            shown["RDS"] = [host for table in shown["RDS"] for host in table.get("virtual_hosts", [])]
        warnings = [f"{each.service} {each.code}: {each.reason}" for each in self.composer.warnings]
        return {**{name: found for name, found in shown.items() if found}, "warnings": warnings}


def _setting(value: Any) -> Any:
    """Lists are addresses, a mapping is `rate_limiting`."""
    if isinstance(value, dict):
        return RateLimiting(**{key: _setting(inner) for key, inner in value.items()})
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("name", NAMES)
def test_output_is_as_reviewed(name: str, *, update_golden: bool) -> None:
    file = DIRECTORY / f"{name}.out.yaml"
    text = yaml.safe_dump(Case(name).output(), sort_keys=False, width=118)
    if update_golden:
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.envoy
def test_envoy_takes_every_output(envoy_binary: Path, envoy_version: Version, tmp_path: Path) -> None:
    """Each Envoy takes, of every input, what a node of its version is given."""
    configs = {name: static_config(Case(name, envoy_version).snapshot) for name in NAMES}
    refused = {name: refusal(envoy_binary, config, tmp_path) for name, config in configs.items()}
    assert not {name: reason for name, reason in refused.items() if reason}


def test_every_warning_is_in_some_golden() -> None:
    shown = {finding.code for name in NAMES for finding in Case(name).composer.warnings}
    assert shown == set(Code) - {Code.TRANSLATION_FAILED}  # no file leads to it
