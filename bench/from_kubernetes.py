"""What it costs to follow Kubernetes: the first sync of 50,000 endpoints, and then one slice's change.

Run it as `python bench/from_kubernetes.py`; BENCH_SCALE=0.1 makes a tenth of the services. The API server is a double
in a process of its own, which answers as fast as it can, with objects as large as real ones; the measured process is
`swashplate serve` with everything switched on. One proxy is connected while slices change, to see that they arrive.

The file is not called kubernetes.py because Python would take it for the library of that name.
"""

import asyncio
import os
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import uvloop
import yaml
from fleet.clients import Fleet
from registries.kubernetes_api import ENDPOINTS, namespace_of
from registries.program import Program, Registry, cores, running

SERVICES, CHANGES, IDLE_S = 5_000, 30, 5.0
SYNC_TARGET_S, MEMORY_TARGET, CHANGE_TARGET_S = 15.0, 700e6, 0.020


class Result(NamedTuple):
    """Seconds of CPU and of waiting for one slice's change, without what is spent while nothing happens."""

    change: float
    arrived: float


def kubeconfig(directory: Path, port: int) -> None:
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    (directory / "kubeconfig").write_text(yaml.safe_dump(said))


async def changes(registry: Registry, program: Program, services: int) -> Result:
    fleet = Fleet(program.port, "delta", [f"service-{i}.{namespace_of(i)}" for i in range(services)])
    await fleet.connect([("node-1", "bench")])
    await program.quiet()
    before = program.cost().cpu
    await asyncio.sleep(IDLE_S)
    idle = (program.cost().cpu - before) / IDLE_S
    loop = asyncio.get_running_loop()
    began, before = loop.time(), program.cost().cpu
    times = [await fleet.round(registry, i * 7 % services) for i in range(CHANGES)]
    used = program.cost().cpu - before - idle * (loop.time() - began)
    await fleet.disconnect()
    return Result(used / CHANGES, median(times))


async def measured(services: int, *, first: bool) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        flags = ["--kubernetes", f"--kubeconfig={directory}/kubeconfig", f"--state={directory}/state"]
        configure = partial(kubeconfig, Path(directory))
        async with running("kubernetes_api.py", services, flags, configure) as (registry, program):
            ready = program.cost()
            await asyncio.sleep(2)  # the store is written a second after what it keeps has changed
            await program.quiet()
            settled = program.cost()
            if first:
                print(f"{services:,} services, {services * ENDPOINTS:,} endpoints with their pods, from Kubernetes:")
                print(
                    f"  start to ready                {program.ready_after:8.1f} s   {ready.cpu:.1f} s CPU   "
                    f"(target: {SYNC_TARGET_S:.0f} s)"
                )
                print(f"  with all of it in the store   {'':8}     {settled.cpu:.1f} s CPU")
                most = f"(at most {settled.most / 1e6:.0f}; target: {MEMORY_TARGET / 1e6:.0f} MB)"
                print(f"  memory of the whole server    {settled.memory / 1e6:8.0f} MB  {most}")
            return await changes(registry, program, services)


async def main() -> None:
    cores()
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    large, small = round(SERVICES * scale), round(SERVICES * scale / 10)
    results = {large: await measured(large, first=True), small: await measured(small, first=False)}
    print("One slice's change, from the API server's event to a proxy's ACK:")
    for services in (small, large):
        result = results[services]
        print(
            f"  of {services:6,} services           {result.change * 1e3:8.2f} ms CPU, "
            f"{result.change / results[small].change:.2f} times   (target: {CHANGE_TARGET_S * 1e3:.0f} ms); "
            f"{result.arrived * 1e3:.0f} ms to the ACK"
        )


if __name__ == "__main__":
    uvloop.run(main())
