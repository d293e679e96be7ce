"""Runtime keys of real Envoys, set by an edit of a resource file."""

import json
from pathlib import Path

import pytest

from tests.e2e.harness import raw
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.raw import fetch
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy


@pytest.mark.parametrize("sources", [("resources",), ("services", "routes", "resources")], ids=["alone", "beside"])
async def test_a_key_decides_and_is_taken_back(
    tmp_path: Path, envoy_binary: Path, variant: str, sources: tuple[str, ...]
) -> None:
    """Beside services too, where the layer of the bootstrap would otherwise be an empty one of the server's own."""
    site, port = Site(tmp_path, sources=sources), free_port()
    some = {"default_value": {"numerator": 0}, "runtime_key": "routing.new"}
    to_new = {**raw.answer("new"), "match": {"prefix": "/", "runtime_fraction": some}}
    site.raw("web", raw.listener("web", port, raw.inline(to_new, raw.answer("old"))))

    def layer(**keys: object) -> None:
        kind = f"{raw.TYPE}envoy.service.runtime.v3.Runtime"
        site.raw("runtime", {"@type": kind, "name": "swashplate", "layer": keys})

    async def answered(body: str, envoy: Envoy) -> None:
        async def as_said() -> bool:
            return await fetch(port) == (200, body)

        await until(as_said, f"{body}; runtime: {await envoy.text('/runtime')}")

    async with site.running(), site.envoy(envoy_binary, variant) as envoy:
        await envoy.live(within=10)
        await answered("old", envoy)
        layer(**{"routing.new": 100})
        await answered("new", envoy)
        layer(routing={"new": 0}, other="text")
        await answered("old", envoy)
        assert json.loads(await envoy.text("/runtime"))["entries"]["other"]["final_value"] == "text"
        layer(**{"routing.new": 100})
        await answered("new", envoy)
        (site.resources / "runtime.yaml").unlink()
        await answered("old", envoy)
        layer(**{"routing.new": 100})
        await answered("new", envoy)
