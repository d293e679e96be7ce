"""The rate limit service as its users run it: a process, its files, and what it says of itself."""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import aiohttp

from tests.e2e.harness.ports import free_port
from tests.e2e.harness.process import Process
from tests.e2e.harness.site import write
from tests.e2e.harness.wait import until

HOST: Final = "127.0.0.1"
SKEWED: Final = Path(__file__).with_name("skewed.py")


class Replica:
    """`swashplate ratelimit serve` with the limit files of `limits`. An async context manager: listening on entry.

    `skew_s`: its wall clock goes by so many seconds before the machine's.
    """

    def __init__(
        self, limits: Path, output: Path, *flags: str, host: str = "auto", redis: str = "", skew_s: int = 0
    ) -> None:
        self.port, self.http = free_port(), free_port()
        program: list[str | Path] = [Path(sys.executable).with_name("swashplate")]
        if skew_s:
            program = [sys.executable, SKEWED, str(skew_s)]
        self.process = Process(
            [
                *program,
                *("ratelimit", "serve", "--config", limits, "--host", host),
                *("--listen", f"{HOST}:{self.port}", "--http", f"{HOST}:{self.http}"),
                *(("--redis", redis) if redis else ()),
                *flags,
            ],
            output,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.ended is None:
            await self.process.stop()
        assert "please report it" not in self.process.text(), self.process.tail()
        assert "Traceback" not in self.process.text(), self.process.tail()

    async def start(self) -> None:
        """Until it answers HTTP, ready or not: without its store it is not ready, and answers all the same."""
        await self.process.start()

        async def probe() -> bool:
            self.process.check_running()
            return (await self.page("/healthcheck"))[0] != 0

        try:
            await until(probe, "the service to listen", within=30)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.process.tail()}") from None

    async def ready(self, *, within: float = 15.0) -> None:
        """Waits until it says that calls should be sent to it."""

        async def probe() -> bool:
            self.process.check_running()
            return (await self.page("/healthcheck"))[0] == 200

        await until(probe, "the service to be ready", within)

    async def page(self, path: str) -> tuple[int, str]:
        """Status and text of a GET; 0 where nobody answers."""
        try:
            async with aiohttp.ClientSession() as http, http.get(f"http://{HOST}:{self.http}{path}") as response:
                return response.status, await response.text()
        except aiohttp.ClientError:
            return 0, ""

    async def metrics(self) -> str:
        status, text = await self.page("/metrics")
        assert status == 200, text
        return text

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples that have these labels; 0 where there is none."""
        return metric_in(await self.metrics(), name, **labels)

    def memory(self) -> int:
        """What the process keeps in memory, in KiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


def metric_in(text: str, name: str, **labels: str) -> float:
    """As `Replica.metric`, of what was read earlier."""
    lines = [line for line in text.splitlines() if re.match(rf"{name}[ {{]", line)]
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(label in line for label in wanted))


async def started(replicas: Sequence[Replica]) -> None:
    """All at once: a process takes a second or two to start."""
    await asyncio.gather(*(replica.start() for replica in replicas))
    await asyncio.gather(*(replica.ready() for replica in replicas))


async def ended(replicas: Sequence[Replica]) -> None:
    for replica in replicas:
        await replica.__aexit__()


def limit_file(folder: Path, domain: str, descriptors: list[dict[str, Any]]) -> None:
    """Writes, or replaces, the file of a domain."""
    write(folder / f"{domain}.yaml", {"domain": domain, "descriptors": descriptors})
