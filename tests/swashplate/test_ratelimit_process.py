"""`swashplate ratelimit serve` as processes: one, and several on one port."""

import asyncio
import contextlib
import errno
import gzip
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from structlog.testing import capture_logs

from ratelimit.host import choice
from swashplate import rate_limit_workers
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.valkey import Valkey
from tests.swashplate.ratelimit_site import Site, ask, health
from tests.swashplate.test_ratelimit_metrics import NAME, queries

DEADLINE_S = 60.0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write()
    return site


class Server:
    """A process whose log lines are read as they come."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self.listen = self.http = ""

    async def line(self, event: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        async with asyncio.timeout(DEADLINE_S):
            async for text in self.process.stderr:
                self.lines.append(json.loads(text))
                if self.lines[-1]["event"] == event:
                    return self.lines[-1]
        raise AssertionError(f"ended without saying {event!r}: {self.lines}")

    async def page(self, path: str) -> str:
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.http}{path}") as answer:
            return await answer.text()

    async def post(self, path: str, body: bytes, headers: dict[str, str]) -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"http://{self.http}{path}", data=body, headers=headers) as answer,
        ):
            return answer.status

    async def value(self, series: str) -> float:
        lines = (await self.page("/metrics")).split("\n")
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{series} ")), -1.0)

    def children(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    async def ended(self) -> int:
        async with asyncio.timeout(DEADLINE_S):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def serving(site: Site, *arguments: str) -> AsyncIterator[Server]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "swashplate", "ratelimit", "serve", "--config", str(site.limits)),
        *("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    server = Server(process)
    try:
        said = await server.line("serving rate limits")
        server.listen, server.http = said["listen"], said["http"]
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        # Its pipe, which else is closed when nobody looks.
        process._transport.close()  # type: ignore[attr-defined]


NO_METHOD = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + bytes(3)
    + b"\x04"
    + bytes(5)
    + (b"\x00\x00\x0c\x01\x04\x00\x00\x00\x01\x00\x07:method\x02no")
)
"""A request by HTTP/2 whose method is none."""


@pytest.mark.parametrize("is_secure", [True, False])
async def test_who_does_not_speak_grpc_writes_nothing_to_the_log(site: Site, is_secure: bool) -> None:
    files = Path(__file__).parents[1] / "e2e" / "tls"
    tls = ("--tls-cert", str(files / "server.pem"), "--tls-key", str(files / "server.key"))
    async with serving(site, "--host", "grpcio", *(tls if is_secure else ())) as server:
        host, _, port = server.listen.rpartition(":")
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01 no", NO_METHOD, b""):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(said)
            writer.write_eof()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        server.process.send_signal(signal.SIGTERM)
        await server.ended()
        assert server.process.stderr is not None
        rest = (await server.process.stderr.read()).decode().splitlines()
    assert [line for line in rest if not line.startswith("{")] == []


async def is_healthy(server: Server) -> bool:
    return await server.page("/healthcheck") == "OK"


async def test_probes_of_several_workers(site: Site) -> None:
    async with serving(site, "--workers", "2", "--redis", f"redis://127.0.0.1:{free_port()}") as server:
        assert await server.page("/healthz") == "ok\n"

        async def ready() -> bool:
            return (await server.page("/readyz")).startswith("ok\nstore of counters: ")

        await until(ready, "ready but for the store", within=DEADLINE_S)
        assert await server.page("/healthcheck") != "OK"


async def test_one_process_from_start_to_signal(site: Site) -> None:
    async with serving(site) as server:
        await until(lambda: is_healthy(server), "limits", within=DEADLINE_S)
        assert [(await ask(server.listen, {"client": "web"})).overall_code for _ in range(4)] == [1, 1, 1, 2]
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0


@pytest.mark.parametrize("workers", [1, 2])
async def test_without_the_native_host_all_is_served_and_what_is_lost_is_said(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """A folder of its name that holds no extension, as a clone without cargo has."""
    (tmp_path / "path" / "grpchost").mkdir(parents=True)
    (tmp_path / "path" / "grpchost" / "__init__.py").write_text("from grpchost._grpchost import Host\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    async with Valkey() as valkey, serving(site, "--workers", str(workers), "--redis", valkey.url) as server:
        line = await server.line("grpchost is not built here")
        assert "grpcio" in line["lost"]
        assert "cargo" in line["fix"]
        await until(lambda: is_healthy(server), "limits", within=DEADLINE_S)
        assert (await ask(server.listen, {"client": "web"})).overall_code == 1


async def test_sighup_ends_nothing_and_is_told(site: Site) -> None:
    async with Valkey() as valkey, serving(site, "--workers", "2", "--redis", valkey.url) as server:
        for pid in (server.process.pid, *server.children()):
            os.kill(pid, signal.SIGHUP)
        await server.line(
            "SIGHUP does nothing: files are followed, and edits are in force already; settings need a restart"
        )
        await until(lambda: is_healthy(server), "limits", within=DEADLINE_S)
        assert await server.value("swashplate_ratelimit_worker_restarts_total") == 0
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0


async def test_several_share_a_port_their_counters_and_one_page_of_metrics(site: Site) -> None:
    async with Valkey() as valkey, serving(site, "--workers", "2", "--redis", valkey.url) as server:

        async def all_ready() -> bool:
            return await server.value("swashplate_ratelimit_ready") == 1

        await until(all_ready, "limits in every worker", within=DEADLINE_S)
        assert await is_healthy(server)
        assert await health(server.listen, "ratelimit") == "SERVING"
        hits = 'ratelimit_service_rate_limit_total_hits{domain="shop",key1="client"}'
        codes = [(await ask(server.listen, {"client": "web"})).overall_code for _ in range(20)]
        assert codes.count(1) == 3
        assert await server.value(hits) == 20
        times = "ratelimit_service_response_time_seconds"
        assert await server.value(f'{times}_count{{grpc_method="ShouldRateLimit"}}') == 20
        assert await server.value(f'{times}_bucket{{grpc_method="ShouldRateLimit",le="+Inf"}}') == 20
        assert await server.value("swashplate_ratelimit_workers") == 2
        packed = gzip.compress(b'{"domain": "shop", "descriptors": [{"entries": [{"key": "unlimited"}]}]}')
        assert await server.post("/json", packed, {"Content-Encoding": "gzip"}) == 200
        assert await server.post("/json", b"not packed", {"Content-Encoding": "gzip"}) == 400

        await ask(server.listen, {"x": "y"}, domain="nobody's")
        there = set(re.findall(r"^(\w+)", await server.page("/metrics"), re.MULTILINE))
        asked = {name for _, query in queries() for name in re.findall(NAME, query)}
        unknown = {"swashplate_ratelimit_connections"} if not choice.has_native() else set()
        assert asked - there <= unknown, "the dashboard has panels that stay empty"

        victim = server.children()[0]
        os.kill(victim, signal.SIGKILL)
        assert (await server.line("a worker ended and is replaced"))["code"] == -signal.SIGKILL
        # Nothing that was counted is lost, or Prometheus would see a counter begin anew.
        assert await server.value(hits) == 20
        await server.line("a worker takes calls again")
        assert await server.value("swashplate_ratelimit_workers") == 2
        assert await server.value("swashplate_ratelimit_worker_restarts_total") == 1
        assert victim not in server.children()
        await until(all_ready, "limits in the new worker", within=DEADLINE_S)
        assert (await ask(server.listen, {"client": "web"})).overall_code == 2

        workers = server.children()
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
        assert not any(map(_runs, workers))


async def test_a_worker_is_replaced_though_no_process_could_be_made_at_first(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made, failures = asyncio.create_subprocess_exec, list[asyncio.subprocess.Process](), 0

    async def create(*_: str, **pipes: Any) -> asyncio.subprocess.Process:
        nonlocal failures
        if len(made) == 2 and failures < 2:
            failures += 1
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        made.append(await make("sh", "-c", """echo '{}'; echo '{"host": "native"}'; exec cat > /dev/null""", **pipes))
        return made[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create)
    monkeypatch.setattr(rate_limit_workers, "_LONGEST_WAIT_S", 0.01)
    workers = rate_limit_workers.Workers(site.settings(ratelimit_workers=2), structlog.get_logger())
    with capture_logs() as lines:
        await workers.start()
        made[0].kill()

        async def replaced() -> bool:
            return len(made) == 3

        await until(replaced, "another worker", within=DEADLINE_S)
        await workers.stop()
    assert [line["event"].partition(":")[0] for line in lines[:3]] == [
        "a worker ended and is replaced",
        *["a worker cannot be started"] * 2,
    ]


FAKE = """
import sys, time
from pathlib import Path
from swashplate.rate_limit_worker import read_order
order = read_order(sys.stdin.buffer)
time.sleep(0.5 * order.number)
prepared = time.monotonic()
print("{}", flush=True)
let = sys.stdin.buffer.read(1) and time.monotonic()
Path(sys.argv[1], str(order.number)).write_text(f"{prepared} {let}")
print('{"host": "native"}', flush=True)
sys.stdin.buffer.read()
"""


async def test_workers_listen_when_all_can_and_one_that_never_answers_its_parent_is_replaced(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to listen would get the connections of all callers that wait for the port."""
    make, made = asyncio.create_subprocess_exec, list[asyncio.subprocess.Process]()

    async def create(*_: str, **pipes: Any) -> asyncio.subprocess.Process:
        made.append(await make(sys.executable, "-c", FAKE, str(tmp_path), **pipes))
        return made[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create)
    monkeypatch.setattr(rate_limit_workers, "_LOOK_S", 0.05)
    workers = rate_limit_workers.Workers(site.settings(ratelimit_workers=2), structlog.get_logger())
    with capture_logs() as lines:
        await workers.start()
        times = [[float(text) for text in (tmp_path / number).read_text().split()] for number in "01"]
        assert min(let for _, let in times) >= max(prepared for prepared, _ in times)

        async def replaced() -> bool:
            return len(made) >= 4

        await until(replaced, "others in the place of both", within=DEADLINE_S)
        await workers.stop()
    events = [line["event"] for line in lines]
    assert events.count("a worker hangs and is ended") >= 2
    assert made[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("at", ["the order", "listening"])
async def test_a_worker_that_hangs_at_the_start_is_not_waited_for_for_ever(
    site: Site, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = asyncio.create_subprocess_exec, list[asyncio.subprocess.Process]()

    async def create(*_: str, **pipes: Any) -> asyncio.subprocess.Process:
        said = "echo '{}'; " if at == "listening" else ""
        made.append(await make("sh", "-c", f"{said}exec cat 3>&1 > /dev/null", **pipes))
        return made[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create)
    monkeypatch.setattr(rate_limit_workers, "_START_S", 0.2)
    workers = rate_limit_workers.Workers(site.settings(ratelimit_workers=2), structlog.get_logger())
    with capture_logs() as lines:
        with pytest.raises(rate_limit_workers.WorkersFailedError, match="could not begin"):
            await workers.start()
        await workers.stop()
    assert [line["event"] for line in lines] == ["a worker hangs: it has not begun within 0.2 s, and is ended"] * 2
    assert [process.returncode for process in made] == [-signal.SIGKILL] * 2


async def test_a_worker_that_hangs_when_it_replaces_another_is_replaced_itself(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = asyncio.create_subprocess_exec, list[asyncio.subprocess.Process]()

    async def create(*_: str, **pipes: Any) -> asyncio.subprocess.Process:
        said = "" if len(made) == 2 else """echo '{}'; echo '{"host": "native"}'; """
        made.append(await make("sh", "-c", f"{said}exec cat 3>&1 > /dev/null", **pipes))
        return made[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create)
    monkeypatch.setattr(rate_limit_workers, "_START_S", 0.2)
    workers = rate_limit_workers.Workers(site.settings(ratelimit_workers=2), structlog.get_logger())
    with capture_logs() as lines:
        await workers.start()
        made[0].kill()

        async def told() -> bool:
            return "a worker takes calls again" in [line["event"] for line in lines]

        await until(told, "a worker in the place of both", within=DEADLINE_S)
        await workers.stop()
    assert len(made) == 4


async def test_a_signal_ends_what_has_not_begun_yet(site: Site) -> None:
    """However long a start may take."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STUCK, "ratelimit", "serve", "--config", str(site.limits), "--redis", "redis://x"),
        *("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--workers", "2"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            assert process.stdout is not None
            assert await process.stdout.readline() == b"begun\n"
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process._transport.close()  # type: ignore[attr-defined]


STUCK = """
import asyncio
from swashplate import rate_limit_workers
from swashplate.cli import main

async def begin(self, number):
    print("begun", flush=True)
    await asyncio.Event().wait()

rate_limit_workers.Workers._begin = begin
main()
"""


async def test_a_worker_that_hangs_keeps_nobody_from_the_pages_of_the_others(site: Site) -> None:
    async with Valkey() as valkey, serving(site, "--workers", "2", "--redis", valkey.url) as server:

        async def all_ready() -> bool:
            return await server.value("swashplate_ratelimit_ready") == 1

        await until(all_ready, "limits in every worker", within=DEADLINE_S)
        for _ in range(10):
            await ask(server.listen, {"client": "web"})
        hits = 'ratelimit_service_rate_limit_total_hits{domain="shop",key1="client"}'
        assert await server.value(hits) == 10
        for pid in server.children():
            os.kill(pid, signal.SIGSTOP)
            async with asyncio.timeout(9):
                # Once each: which of them is asked first is not known.
                assert await is_healthy(server)
                assert await server.value(hits) == 10, "a counter of metrics never goes down"
            os.kill(pid, signal.SIGCONT)


async def test_workers_do_not_outlive_their_parent(site: Site) -> None:
    async with Valkey() as valkey, serving(site, "--workers", "2", "--redis", valkey.url) as server:
        workers = server.children()
        assert len(workers) == 2
        server.process.kill()
        await server.ended()

        async def gone() -> bool:
            return not any(_runs(pid) for pid in workers)

        await until(gone, "the end of the workers", within=DEADLINE_S)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # whom nobody waits for any more, but has ended
