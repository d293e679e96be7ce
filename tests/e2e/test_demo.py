"""`make run`'s program: the example runs, and nothing of it is left behind."""

import os
import re
import shutil
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.harness.load import Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.process import Process
from tests.e2e.harness.wait import until

pytestmark = [pytest.mark.envoy, pytest.mark.xdist_group("demo")]

EXAMPLE = Path(__file__).parents[2] / "envoy-configs"
FLAGS = ("--xds-port", "--admin-port", "--egress-port", "--envoy-admin-port")
RUNNING = "Ctrl-C ends everything."


class Demo:
    """The demo on a copy of the example, everything on ports of its own."""

    def __init__(self, directory: Path) -> None:
        self.example = directory / "envoy-configs"
        shutil.copytree(EXAMPLE, self.example)
        services = self.example / "services.yaml"
        services.write_text(re.sub(r"127\.0\.0\.1:\d+", lambda _: f"127.0.0.1:{free_port()}", services.read_text()))
        self.route = self.example / "routes" / "checkout.yaml"
        self.ports = {flag: free_port() for flag in FLAGS}
        flags = [part for flag, port in self.ports.items() for part in (flag, str(port))]
        command = [sys.executable, "-m", "swashplate.demo", "--example", str(self.example), *flags]
        self.process = Process(command, directory / "demo.log")

    def load(self, host: str) -> Load:
        return Load(("127.0.0.1", self.ports["--egress-port"]), host, rate=100)

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[None]":
        await self.process.start()

        async def said_so() -> bool:
            self.process.check_running()
            return RUNNING in self.process.text()

        try:
            await until(said_so, "the demo to run", within=40)
            yield
        finally:
            if self.process.ended is None:
                await self.process.stop()

    def children(self) -> dict[str, int]:
        """Name -> process id of what it has started."""
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        found = {pid: _parent_and_name(pid) for pid in pids}
        return {name: pid for pid, (parent, name) in found.items() if parent == self.process.pid}


def alive(pid: int) -> bool:
    """Whether it runs; a zombie that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _parent_and_name(pid: int) -> tuple[int, str]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it ended meanwhile
        return 0, ""
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return int(rest.split()[1]), name


async def gone(pids: list[int]) -> None:
    async def none_left() -> bool:
        return not any(map(alive, pids))

    await until(none_left, f"processes {pids} to be gone")


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return Demo(tmp_path)


async def test_the_example_runs_follows_an_edit_and_ends(demo: Demo) -> None:
    async with demo.running():
        children = demo.children()
        assert "envoy" in children
        assert len(children) == 2
        async with demo.load("checkout") as load:
            before = Counter(answer.subset for answer in await load.more(300))
            edited = re.sub(r"stable: 90%, canary: 10%", "stable: 0%, canary: 100%", demo.route.read_text())
            since = load.answers[-1].done
            demo.route.write_text(edited)
            await load.in_force(lambda answer: answer.subset == "canary", since)
            await load.over(lambda answer: answer.subset == "stable", since)
        assert load.failures() == []
        assert before.keys() == {"stable", "canary"}
        assert before["stable"] > before["canary"]
        assert await demo.process.stop(signal.SIGINT) == 0
    await gone(list(children.values()))
    assert "Traceback" not in demo.process.text()


async def test_the_limit_of_the_example_is_at_work(demo: Demo) -> None:
    """Twenty requests meet two windows at most, each of which lets five of them pass."""
    url = f"http://127.0.0.1:{demo.ports['--egress-port']}/"
    keyed = {"host": "checkout", "x-api-key": "me"}
    async with demo.running(), aiohttp.ClientSession() as http:
        answers = []
        for _ in range(20):
            async with http.get(url, headers=keyed) as answer:
                answers.append(answer)
        refused = [answer for answer in answers if answer.status == 429]
        assert len(refused) >= 10
        assert answers[0].status == 200
        assert answers[0].headers["x-ratelimit-limit"] == "5, 5;w=60"
        assert {answer.headers["x-ratelimit-remaining"] for answer in refused} == {"0"}
        async with demo.load("checkout") as load:
            assert {answer.status for answer in await load.more(20)} == {200}
        counters = f"http://127.0.0.1:{demo.ports['--admin-port']}/ratelimit/counters?domain=swashplate"
        async with http.get(counters) as answer:
            (counter,) = (await answer.json())["counters"]
        assert counter["hits"] >= 5


async def test_every_service_of_the_example_answers(demo: Demo) -> None:
    names = re.findall(r"^- name: (\S+)", (demo.example / "services.yaml").read_text(), re.MULTILINE)
    assert len(names) >= 2
    async with demo.running():
        for name in names:
            async with demo.load(name) as load:
                assert {answer.status for answer in await load.more(4)} == {200}


async def test_it_ends_when_a_part_of_it_dies(demo: Demo) -> None:
    async with demo.running():
        children = demo.children()
        os.kill(children["envoy"], signal.SIGKILL)
        assert await demo.process.end() == 1
    await gone(list(children.values()))
    assert "Envoy ended by itself" in demo.process.text()


async def test_nothing_is_orphaned_when_it_is_killed(demo: Demo) -> None:
    async with demo.running():
        children = demo.children()
        await demo.process.stop(signal.SIGKILL)
        await gone(list(children.values()))


async def test_a_closed_terminal_ends_it_in_order_and_leftovers_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    demo = Demo(tmp_path)
    (tmp_path / "swashplate-demo-999999999-left").mkdir()
    async with demo.running():
        children = demo.children()
        assert [name.split("-")[2] for name in directories(tmp_path)] == [str(demo.process.pid)]
        assert await demo.process.stop(signal.SIGHUP) == 0
    await gone(list(children.values()))
    assert directories(tmp_path) == []
    assert "All stopped." in demo.process.text()


def directories(parent: Path) -> list[str]:
    """What demos have put there."""
    return [path.name for path in parent.glob("swashplate-demo-*")]


async def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAKELEVEL", raising=False)
    demo = Demo(tmp_path)
    port = demo.ports["--egress-port"]
    with socket.create_server(("127.0.0.1", port)):
        await demo.process.start()
        assert await demo.process.end() == 1
    text = demo.process.text()
    assert f"127.0.0.1:{port} (Envoy's egress listener)" in text
    assert re.search(r"Use others: python -m swashplate\.demo --egress-port \d+$", text, re.MULTILINE)
    assert "Traceback" not in text
