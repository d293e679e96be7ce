"""A real Envoy and its admin interface."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml

from tests.e2e.harness.process import Process
from tests.e2e.harness.wait import until


class Envoy:
    """An Envoy process run from a bootstrap whose admin address must have a fixed port.

    Used as an async context manager: live on entry, ended on exit.
    """

    def __init__(self, binary: Path, bootstrap: dict[str, Any], directory: Path, name: str = "envoy") -> None:
        address = bootstrap["admin"]["address"]["socket_address"]
        self.admin = f"http://{address['address']}:{address['port_value']}"
        config = directory / f"{name}.yaml"
        config.write_text(yaml.safe_dump(bootstrap))
        command: list[str | Path] = [binary, "-c", config, "--disable-hot-restart", "--concurrency", "2"]
        self.process = Process([*command, "--drain-time-s", "1", "-l", "info"], directory / f"{name}.log")
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession()
        await self.process.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.process.stop()
        finally:
            if self._http is not None:
                await self._http.close()

    async def text(self, path: str) -> str:
        """What the admin interface answers to a GET. Raises AssertionError where Envoy has ended."""
        assert self._http is not None
        self.process.check_running()
        async with self._http.get(self.admin + path) as response:
            return await response.text()

    async def live(self, within: float = 20.0) -> None:
        """Waits until Envoy has its first configuration and serves."""

        async def ready() -> bool:
            return (await self.text("/ready")).strip() == "LIVE"

        try:
            await until(ready, "Envoy to be live", within)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.process.tail()}") from None

    async def stat(self, name: str) -> int:
        """A counter or gauge; 0 where Envoy has none of that name."""
        stats = json.loads(await self.text(f"/stats?format=json&filter=^{name}$"))["stats"]
        return next((stat["value"] for stat in stats if stat.get("name") == name), 0)

    async def config(self) -> dict[str, Any]:
        """Envoy's configuration as it holds it now, endpoints included, without what only the moment changes."""
        dump = json.loads(await self.text("/config_dump?include_eds"))
        return {entry["@type"].rpartition(".")[2]: _stable(entry) for entry in dump["configs"]}

    async def hosts(self, cluster: str) -> dict[str, str]:
        """Address -> EDS health of a cluster's endpoints."""
        clusters = json.loads(await self.text("/clusters?format=json")).get("cluster_statuses", [])
        found: dict[str, Any] = next((entry for entry in clusters if entry["name"] == cluster), {})
        return {
            "{address}:{port_value}".format(**host["address"]["socket_address"]): host["health_status"].get(
                "eds_health_status", ""
            )
            for host in found.get("host_statuses", [])
        }

    async def clusters(self) -> set[str]:
        """Names of all clusters."""
        statuses = json.loads(await self.text("/clusters?format=json")).get("cluster_statuses", [])
        return {entry["name"] for entry in statuses}


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable(inner) for key, inner in value.items() if key != "last_updated"}
    if isinstance(value, list):
        return sorted((_stable(inner) for inner in value), key=lambda inner: json.dumps(inner, sort_keys=True))
    return value
