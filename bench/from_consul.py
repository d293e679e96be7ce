"""What it costs to follow Consul: 800 services, 2,000 instances, 100 proxies, ten changes a second.

Run it as `python bench/from_consul.py`; BENCH_SCALE=0.1 makes a tenth of the services and proxies. The agent is a
double in a process of its own, with answers as large as a real one's; the measured process is `swashplate serve` with
everything switched on. Changes come at random times, ten a second on average, each of another service.
"""

import asyncio
import os
import random
import tempfile
from itertools import count
from statistics import median

import uvloop
from fleet.clients import Fleet
from registries.consul_agent import INSTANCES
from registries.program import Program, Registry, cores, running

SERVICES, PROXIES, PER_S, SECONDS, ALONE = 800, 100, 10, 20, 20
TARGET = 0.15


async def share(program: Program, seconds: float) -> float:
    """Of one core, in the next `seconds`."""
    loop = asyncio.get_running_loop()
    began, before = loop.time(), program.cost().cpu
    await asyncio.sleep(seconds)
    return (program.cost().cpu - before) / (loop.time() - began)


async def churn(registry: Registry, services: int, numbers: "count[int]") -> None:
    """Changes for ever, of one service after the other."""
    said = random.Random(1)
    loop = asyncio.get_running_loop()
    at = loop.time()
    while True:
        at += said.expovariate(PER_S)
        await asyncio.sleep(at - loop.time())
        await registry.change(next(numbers) * 7 % services)


async def measured(registry: Registry, program: Program, services: int, proxies: int) -> None:
    fleet = Fleet(program.port, "delta", [f"service-{i}" for i in range(services)])
    await fleet.connect([(f"node-{i}", "bench") for i in range(proxies)])
    await program.quiet()
    print(f"  start to ready                {program.ready_after:8.1f} s")
    print(f"  while nothing changes         {await share(program, 10) * 100:8.1f} % of a core")
    numbers = count()
    changing = asyncio.create_task(churn(registry, services, numbers))
    await asyncio.sleep(1)
    first, fleet.acks = next(numbers), 0
    used = await share(program, SECONDS)
    changes, acks = next(numbers) - first - 1, fleet.acks
    changing.cancel()
    rate = f"{changes / SECONDS:.1f} changes, {acks / SECONDS:.0f} pushes and ACKs a second"
    print(f"  in steady churn               {used * 100:8.1f} % of a core   (target: {TARGET * 100:.0f} %); {rate}")
    await program.quiet()
    times = [await fleet.round(registry, next(numbers) * 7 % services) for _ in range(ALONE)]
    print(f"  a change to the last ACK      {median(times) * 1e3:8.0f} ms (slowest {max(times) * 1e3:.0f})")
    print(f"  memory of the whole server    {program.cost().memory / 1e6:8.0f} MB")
    await fleet.disconnect()


async def main() -> None:
    cores()
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    services, proxies = round(SERVICES * scale), round(PROXIES * scale)
    instances = sum(INSTANCES[i % 2] for i in range(services))
    print(f"{services:,} services, {instances:,} instances from Consul, {proxies} incremental proxies:")
    enough = services + 200
    for what, more in (
        ("As it is, with 150 connections to the agent; other services are asked in turn:", []),
        (f"With {enough:,} connections, so that each service has one:", [f"--consul-max-connections={enough}"]),
    ):
        print(what)
        with tempfile.TemporaryDirectory() as directory:
            flags = ["--consul=http://127.0.0.1:{port}", f"--state={directory}/state", *more]
            async with running("consul_agent.py", services, flags) as (registry, program):
                await measured(registry, program, services, proxies)


if __name__ == "__main__":
    uvloop.run(main())
