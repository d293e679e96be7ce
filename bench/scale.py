"""What 1,000 services of 10 endpoints cost: all of them from files to bytes, and then one endpoint's change.

Run it as `python bench/scale.py`. Times are of the process's own CPU, so that a busy machine does not matter much;
the ratio is of the same run.
"""

import gc
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import MappingProxyType

from discovery.files.book import ServiceBook
from discovery.registry import Changes, Evidence, Registry
from mesh.mesh import Mesh
from routes.book import RouteBook
from xds.resources import types
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot
from xds.translate.composer import Composer

SERVICES, ENDPOINTS, EDITS = 1_000, 10, 50
LOAD_TARGET_S, CHANGE_TARGET_S = 2.0, 0.020
SOURCE = "files"

ROUTE = """\
version: 1
service: {name}
subsets:
  stable: {{version: v1}}
  canary: {{version: v2}}
defaults: {{timeout: 3s, retry: {{attempts: 2}}}}
rules:
- name: testers
  match: [{{headers: {{x-tester: "1"}}}}]
  to: canary
- name: main
  to: {{stable: 90%, canary: 10%}}
"""


def name_of(service: int) -> str:
    return f"service-{service:04}"


def service_file(service: int, weight_of_first: int = 1) -> bytes:
    lines = ["version: 1", "services:", f"- name: {name_of(service)}", "  endpoints:"]
    for i in range(ENDPOINTS):
        address = f"10.{service // 250}.{service % 250}.{i + 1}:8080"
        weight = weight_of_first if i == 0 else 1
        labels = f"{{version: v{2 if i == 0 else 1}}}"
        lines.append(f'  - {{address: "{address}", weight: {weight}, zone: z{i % 3}, labels: {labels}}}')
    return "\n".join([*lines, ""]).encode()


class Pipeline:
    """The way from files to bytes, as the server goes it, without its waiting."""

    def __init__(self) -> None:
        self.composer = Composer()
        self.node = Node("bench-1", "bench")
        self._services = ServiceBook("default")
        self._routes = RouteBook()
        self._changed: Changes = {}
        self._registry = Registry([SOURCE], self._take, time.time)
        self._mesh = Mesh()

    def read_services(self, files: Mapping[str, bytes]) -> None:
        old = self._services
        self._services = old.edited(files)
        new = self._services.services
        names = {name for path in files for name in self._services.services_in(path)}
        changes = {name: new[name] for name in names if old.services.get(name) is not new[name]}
        self._registry.feed(SOURCE).publish(changes, Evidence.LIVE)
        assert not self._services.problems, self._services.problems[0].render()

    def read_routes(self, files: Mapping[str, bytes]) -> None:
        self._routes = self._routes.edited(files)
        assert not self._routes.problems, self._routes.problems[0].render()
        self._mesh = self._mesh.with_changes(routes=self._routes.routes)

    def translate(self) -> Snapshot:
        self._mesh = self._mesh.with_changes(services=self._changed)
        self._changed = {}
        self.composer.update(self._mesh)
        return self.composer.view(self.node)

    def _take(self, changes: Changes) -> None:
        self._changed = MappingProxyType({**self._changed, **changes})


def bytes_since(new: Snapshot, old: Snapshot | None) -> int:
    """Encodes what an incremental client that has `old` is sent; its size."""
    size = 0
    for type_url in types.ORDER:
        before = old.layers.get(type_url, ()) if old else ()
        for i, part in enumerate(new.layers.get(type_url, ())):
            changed = part.since(before[i]).changed if i < len(before) else tuple(part)
            size += sum(len(resource.body) for resource in changed)
    return size


@contextmanager
def timed(into: dict[str, float], what: str) -> Iterator[None]:
    start = time.process_time()
    yield
    into[what] = time.process_time() - start


def read(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.iterdir())}


def load(pipeline: Pipeline, directory: Path) -> tuple[dict[str, float], Snapshot, int]:
    steps: dict[str, float] = {}
    with timed(steps, "read and check the service files"):
        pipeline.read_services(read(directory / "services"))
    with timed(steps, "read and check the route files"):
        pipeline.read_routes(read(directory / "routes"))
    with timed(steps, "translate, encode every resource"):
        snapshot = pipeline.translate()
    with timed(steps, "join the bytes of the route table"):
        size = bytes_since(snapshot, None)
    return steps, snapshot, size


def change(pipeline: Pipeline, edit: Mapping[str, bytes], old: Snapshot) -> tuple[float, Snapshot, int]:
    steps: dict[str, float] = {}
    with timed(steps, "all"):
        pipeline.read_services(edit)
        snapshot = pipeline.translate()
        size = bytes_since(snapshot, old)
    return steps["all"], snapshot, size


def write(directory: Path) -> list[str]:
    """Writes all files; the paths of the service files."""
    paths = [directory / "services" / f"{name_of(service)}.yaml" for service in range(SERVICES)]
    for kind in ("services", "routes"):
        (directory / kind).mkdir()
    for service, path in enumerate(paths):
        path.write_bytes(service_file(service))
        (directory / "routes" / path.name).write_text(ROUTE.format(name=name_of(service)))
    return [str(path) for path in paths]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        paths = write(Path(name))
        gc.collect()
        pipeline = Pipeline()
        steps, snapshot, size = load(pipeline, Path(name))

    print(f"{SERVICES:,} services x {ENDPOINTS} endpoints, a route file each, from files to bytes:")
    for what, seconds in steps.items():
        print(f"  {what:34} {seconds * 1e3:8.1f} ms")
    whole = sum(steps.values())
    print(f"  {'all of it':34} {whole * 1e3:8.1f} ms   {size / 1e6:.1f} MB   (target: {LOAD_TARGET_S:.0f} s)")

    costs = []
    for i in range(EDITS):
        service = i * 7 % SERVICES
        edit = {paths[service]: service_file(service, weight_of_first=2 + i)}
        cost, snapshot, size = change(pipeline, edit, snapshot)
        costs.append(cost)
    one = median(costs)
    print(f"One endpoint's change, from its file's new text to bytes (median of {EDITS}):")
    figures = f"{one * 1e3:8.2f} ms   {size:,} bytes"
    print(
        f"  {'all of it':34} {figures}   (target: {CHANGE_TARGET_S * 1e3:.0f} ms; slowest {max(costs) * 1e3:.2f} ms)"
    )
    print(f"Loading everything costs {whole / one:,.0f} times as much as one change.")


if __name__ == "__main__":
    main()
