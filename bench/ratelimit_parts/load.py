"""Calls from `grpchost-load`, which cost a small part of what they cost a server."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ratelimit_parts.servers import Server

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = float(os.environ.get("BENCH_SECONDS", "2"))
"""How long a measurement counts; a quarter of it goes before, and does not."""


class Kind(NamedTuple):
    """What is asked: `keys` as the generator calls them, and descriptors."""

    name: str
    keys: str
    descriptors: Sequence[str]


class Seen(NamedTuple):
    """Calls a second and milliseconds, as callers saw them; microseconds of the server's CPU a call."""

    rate: float
    p50: float
    p99: float
    cpu: float


def built() -> Path | None:
    """The generator, made by cargo; None where there is none."""
    cargo = shutil.which("cargo") or shutil.which(Path.home() / ".cargo/bin/cargo")
    if cargo is None:
        return None
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / ".cache" / "grpchost"))
    command = [cargo, "build", "--quiet", "--release", "--locked", "--package", "grpchost-load"]
    subprocess.run(command, cwd=ROOT / "grpchost", env={**os.environ, "CARGO_TARGET_DIR": str(target)}, check=True)
    return target / "release" / "grpchost-load"


class Load:
    """From the second core, where there are two."""

    def __init__(self, generator: Path) -> None:
        self._generator = generator

    def closed(self, server: Server, kind: Kind, connections: int = 4, in_flight: int = 50) -> Seen:
        """So many calls are in flight on each connection, all the time."""
        return self._seen(server, kind, "--connections", str(connections), "--in-flight", str(in_flight))

    def one_by_one(self, server: Server, kind: Kind) -> Seen:
        return self.closed(server, kind, connections=1, in_flight=1)

    def fixed(self, server: Server, kind: Kind, rate: float) -> Seen:
        """So many calls a second, answered or not; times are from when a call was due."""
        return self._seen(server, kind, "--rate", f"{rate:.0f}")

    def _seen(self, server: Server, kind: Kind, *how: str) -> Seen:
        descriptors = [f"--descriptor={descriptor}" for descriptor in kind.descriptors]
        times = [f"--warmup={SECONDS / 4}", f"--duration={SECONDS}"]
        command = [
            str(self._generator),
            f"127.0.0.1:{server.port}",
            f"--keys={kind.keys}",
            *descriptors,
            *times,
            *how,
        ]
        before = server.cpu()
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        used = server.cpu() - before
        found = json.loads(said)
        assert found["ok"] > 0 == found["errors"], f"{server.name} has not answered all calls: {said}"
        # The warm-up's calls cost CPU too, about as much as their share of the time.
        calls = found["ok"] * 1.25
        return Seen(found["calls_per_s"], found["p50_ms"], found["p99_ms"], used / calls * 1e6)
