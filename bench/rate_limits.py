"""The rate limit service: calls a second, latency, and what decides them. It needs cargo, for the load generator.

`python bench/rate_limits.py` starts `swashplate ratelimit serve` as operators do, alone on the first core, with a
Valkey and the load generator on the second. BENCH_SECONDS (2) is how long each figure is measured, BENCH_ROUNDS (3)
how often; servers that are compared take turns.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from fleet.server import pin
from ratelimit_parts.limits import DENIED, DESCRIPTORS, TENANT, write_limits
from ratelimit_parts.load import Kind, Load, Seen, built
from ratelimit_parts.servers import Server, empty_handler, swashplate, valkey

ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "3"))
"""Of each measurement the best counts: what else the machine does can only make it worse."""

HOT: Final = Kind("one hot key", "hot", DESCRIPTORS[:1])
UNIQUE: Final = Kind("unique keys", "unique", DESCRIPTORS[:1])
ZIPF: Final = Kind("Zipf, 100,000 keys", "zipf", DESCRIPTORS[:1])
OVER: Final = Kind("a key over its limit", "hot", [DENIED])
KINDS: Final = (HOT, UNIQUE, ZIPF, OVER)
TENANTS: Final = Kind("unique keys of a tenant", "unique", [TENANT])


def peaks(load: Load, servers: Sequence[Server], kind: Kind) -> list[Seen]:
    """Of each server, the most calls that it answered."""
    rounds = [[load.closed(server, kind) for server in servers] for _ in range(ROUNDS)]
    return [max(of_one) for of_one in zip(*rounds, strict=True)]


def calmest(servers: Sequence[Server], ask: Callable[[Server], Seen]) -> list[Seen]:
    """Of each server, the round with the lowest p99."""
    rounds = [[ask(server) for server in servers] for _ in range(ROUNDS)]
    return [min(of_one, key=lambda seen: seen.p99) for of_one in zip(*rounds, strict=True)]


def line(name: str, seen: Seen, more: str = "") -> None:
    times = f"p50 {seen.p50:6.2f} ms   p99 {seen.p99:6.2f} ms"
    print(f"  {name:38} {seen.rate:8,.0f}/s  {seen.cpu:6.1f} us CPU a call   {times}   {more}".rstrip())


def throughput(load: Load, servers: Sequence[Server], kinds: Sequence[Kind]) -> dict[str, list[Seen]]:
    """200 calls in flight; each server beside the last one."""
    found = {}
    for kind in kinds:
        found[kind.name] = peaks(load, servers, kind)
        other = found[kind.name][-1]
        for server, seen in zip(servers, found[kind.name], strict=True):
            ratio = "" if server is servers[-1] else f"{seen.rate / other.rate:.2f} times"
            line(f"{kind.name}, {server.name}" if len(servers) > 1 else kind.name, seen, ratio)
    return found


def latency(load: Load, servers: Sequence[Server], rate: float, kind: Kind = HOT) -> None:
    for server, seen in zip(servers, calmest(servers, lambda server: load.one_by_one(server, kind)), strict=True):
        line(f"one call in flight, {server.name}", seen)
    for server, seen in zip(servers, calmest(servers, lambda server: load.fixed(server, kind, rate)), strict=True):
        line(f"a fixed rate, {server.name}", seen)


def of_the_service(load: Load, limits: Path, redis: str) -> None:
    with swashplate("native", limits, "--host=native", redis) as native:
        print("grpchost and Valkey, 200 calls in flight:")
        found = throughput(load, [native], KINDS)
        for count in (2, 5):
            several = [Kind(f"{keys}, {count} descriptors", keys, DESCRIPTORS[:count]) for keys in ("hot", "unique")]
            throughput(load, [native], several)
        half = found[HOT.name][0].rate / 2
        print(f"Latency (hot key; the fixed rate is half of the peak, {half:,.0f}/s; target: p99 below 5 ms):")
        latency(load, [native], half)
    with swashplate("native", limits, "--host=native") as memory:
        print("grpchost and the memory store, 200 calls in flight:")
        throughput(load, [memory], KINDS)


def of_many_limits(load: Load, few: Path, many: Path, redis: str) -> None:
    print("Unique keys, by how many limits there are (target: 1.1 times):")
    with ExitStack() as stack:
        sizes = (("10,000 limits", many), ("10 limits", few))
        servers = [stack.enter_context(swashplate(name, limits, redis)) for name, limits in sizes]
        throughput(load, servers, [TENANTS])


def of_grpcio(load: Load, limits: Path, redis: str) -> None:
    print("The grpcio host beside a grpcio handler that does nothing (target: 0.8 times):")
    with ExitStack() as stack:
        servers = [
            stack.enter_context(swashplate("grpcio, Valkey", limits, "--host=grpcio", redis)),
            stack.enter_context(swashplate("grpcio, memory", limits, "--host=grpcio")),
            stack.enter_context(empty_handler()),
        ]
        throughput(load, servers, [HOT, UNIQUE])


def main() -> None:
    generator = built()
    if generator is None:
        print("There is no cargo, so no load generator: nothing is measured.")
        return
    pin(os.getpid(), 1)
    load = Load(generator)
    with tempfile.TemporaryDirectory() as directory, valkey() as port:
        few, many = Path(directory, "few"), Path(directory, "many")
        for folder, tenants in ((few, 10), (many, 10_000)):
            folder.mkdir()
            write_limits(folder, tenants)
        redis = f"--redis=redis://127.0.0.1:{port}"
        of_the_service(load, few, redis)
        of_many_limits(load, few, many, redis)
        of_grpcio(load, few, redis)


if __name__ == "__main__":
    main()
