"""What it costs to keep thousands of proxies up to date: connecting them, one change to all, coming back in storms.

Run it as `python bench/fanout.py`; BENCH_SCALE=0.1 makes a tenth of the clients. The server is a process of its
own, and so are the clients; where there are two cores, each has one. Times are the server's CPU where not said
otherwise. `python bench/fleet/server.py XDS-PORT SERVICES HTTP-PORT` is the server alone, for other load generators.
"""

import asyncio
import os
import resource
from statistics import median
from typing import NamedTuple

import uvloop
from fleet.clients import Fleet
from fleet.server import ENDPOINTS, Server, pin, running

EDITS, STORMS = 10, 5


class Result(NamedTuple):
    """CPU seconds to connect a client, and for a push with its ACK; seconds to the last ACK; memory in bytes."""

    connect: float
    push: float
    to_last_ack: float
    slowest: float
    memory: int


def names(services: int, namespaces: int) -> list[str]:
    """Of the clusters; each service has one."""
    if namespaces == 1:
        return [f"service-{i}" for i in range(services)]
    return [f"service-{i}.n{i % namespaces}" for i in range(services)]


async def measured(server: Server, fleet: Fleet, nodes: list[tuple[str, str]], services: int) -> Result:
    before = server.usage()
    await fleet.connect(nodes)
    await asyncio.sleep(1)
    connected = server.usage()
    times = [await fleet.round(server, i % services) for i in range(EDITS)]
    after = server.usage()
    return Result(
        (connected.cpu - before.cpu) / len(nodes),
        (after.cpu - connected.cpu) / (len(nodes) * EDITS),
        median(times),
        max(times),
        after.memory,
    )


async def fan_out(variant: str, clients: int, services: int, storms: int) -> None:
    print(f"{clients:,} {variant} clients x {services:,} services x {ENDPOINTS} endpoints:")
    async with running(services) as server:
        idle = server.usage().memory
        fleet = Fleet(server.port, variant, names(services, 1))
        nodes = [(f"node-{i}", "bench") for i in range(clients)]
        result = await measured(server, fleet, nodes, services)
        print(f"  connect one client                 {result.connect * 1e3:8.2f} ms CPU")
        print(f"  one push and its ACK               {result.push * 1e6:8.0f} us CPU")
        slowest = f"(slowest {result.slowest * 1e3:.0f})"
        print(f"  a change to the last ACK           {result.to_last_ack * 1e3:8.0f} ms {slowest}")
        print(f"  memory                             {result.memory / 1e6:8.0f} MB (idle: {idle / 1e6:.0f})")
        await server.scrape()
        print(f"  a scrape of /metrics               {await server.scrape() * 1e3:8.0f} ms")
        sizes = []
        for _ in range(storms):
            await fleet.disconnect()
            await fleet.connect(nodes)
            sizes.append(server.usage().memory / 1e6)
        if sizes:
            print(f"  after each of {storms} reconnect storms     {', '.join(f'{size:.0f}' for size in sizes)} MB")
        await fleet.disconnect()


async def independence(clients: int, sizes: list[int]) -> None:
    print(f"One service's change at {clients} incremental clients, as a registry of services tells it:")
    costs = []
    for services in sizes:
        async with running(services, files=False) as server:
            fleet = Fleet(server.port, "delta", names(services, 1))
            result = await measured(server, fleet, [(f"node-{i}", "bench") for i in range(clients)], services)
            await fleet.disconnect()
        costs.append(result.push)
        cost = f"{result.push * 1e6:8.0f} us a push and ACK, {costs[-1] / costs[0]:.2f} times"
        print(f"  {services:6,} services      {cost}")


async def views(clients: int, services: int, namespaces: int) -> None:
    print(
        f"{clients:,} incremental clients, {services:,} services in {namespaces} namespaces, told as by a registry:"
    )
    async with running(services, namespaces, files=False) as server:
        every = names(services, namespaces)
        costs = {}
        for what, clusters in (("strangers: one view", ["bench"]), ("each of its own service", every)):
            fleet = Fleet(server.port, "delta", every)
            nodes = [(f"node-{i}", clusters[i % len(clusters)]) for i in range(clients)]
            costs[what] = await measured(server, fleet, nodes, services)
            await fleet.disconnect()
        base = next(iter(costs.values()))
        for what, result in costs.items():
            print(
                f"  {what:26} {result.push * 1e6:8.0f} us a push and ACK, {result.push / base.push:.2f} times; "
                f"change to last ACK {result.to_last_ack * 1e3:.0f} ms; {result.memory / 1e6:.0f} MB"
            )


async def main() -> None:
    pin(0, 1)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    await fan_out("delta", round(2000 * scale), 1000, STORMS)
    await fan_out("sotw", round(500 * scale), 1000, 0)
    await fan_out("delta", round(4000 * scale), 1000, 0)
    await independence(round(500 * scale), [100, 1_000, 10_000])
    await views(round(1000 * scale), 1000, 20)


if __name__ == "__main__":
    uvloop.run(main())
