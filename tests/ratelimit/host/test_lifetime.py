"""How a host begins and ends, whichever it is."""

import asyncio
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import ModuleType

import grpc
import pytest

from ratelimit.host.choice import Kind, chosen, has_native
from tests.e2e.harness.wait import until
from tests.ratelimit.host.both import Call, Site, calling, echo, outcomes

CODE = grpc.StatusCode
ROOT = Path(__file__).parents[3]


async def test_calls_under_way_are_answered_before_it_stops(site: Site, call: Call) -> None:
    answer = asyncio.create_task(_awaited(call(b"x", timeout=20)))
    await site.core.has(1)
    began = time.monotonic()
    stopping = asyncio.create_task(site.host.stop(20))
    done, _ = await asyncio.wait({stopping}, timeout=0.2)
    assert not done
    echo(site.core.turns[0])
    assert await answer == b"x"
    await stopping
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("round_", range(3))
async def test_no_call_that_came_before_the_stop_is_lost_under_load(site: Site, round_: int) -> None:
    """Each caller sends its next call as soon as it has an answer: there are always some that the host's library has
    received, and that nobody has seen yet."""
    site.core.echoes = True
    ends: Counter[grpc.StatusCode] = Counter()

    async def caller(call: Call) -> None:
        while True:
            (ended,) = await outcomes(call(b"x", timeout=20))
            if ended != b"x":
                assert isinstance(ended, grpc.StatusCode)
                ends[ended] += 1
                return

    async with site.channel() as first, site.channel() as second:
        callers = [asyncio.create_task(caller(calling(channel))) for channel in (first, second) for _ in range(40)]
        await site.core.has(300 + 100 * round_)
        began = time.monotonic()
        await site.host.stop(20)
        assert time.monotonic() - began < 15
        await asyncio.gather(*callers)
    assert ends == {CODE.UNAVAILABLE: 80}, "none was CANCELLED"
    counts = site.host.counts
    assert counts.answered == counts.calls


async def test_a_call_that_is_never_answered_does_not_keep_it(site: Site, call: Call) -> None:
    answer = asyncio.create_task(_awaited(call(b"x", timeout=20)))
    await site.core.has(1)
    await site.host.stop(0.2)
    (code,) = await outcomes(answer)
    assert code in (CODE.UNAVAILABLE, CODE.CANCELLED)


async def test_stopped_it_takes_nobody(site: Site) -> None:
    site.core.echoes = True
    await site.host.stop(0)
    async with site.channel() as channel:
        assert await outcomes(calling(channel)(b"x", timeout=20)) == [CODE.UNAVAILABLE]


async def test_it_may_be_stopped_twice_or_without_a_start(kind: Kind) -> None:
    site = Site(kind)
    await site.host.stop(0)
    site = Site(kind)
    await site.start()
    await site.host.stop(0)
    await site.host.stop(0)


async def test_an_address_that_is_taken_is_said(kind: Kind) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        site = Site(kind, listen)
        with pytest.raises(OSError, match=listen):
            await site.host.start()
        await site.host.stop(0)


async def test_it_listens_on_a_unix_socket(kind: Kind, tmp_path: Path) -> None:
    site = Site(kind, f"unix:{tmp_path}/socket")
    site.core.echoes = True
    await site.start()
    # grpcio's own word for the authority of a socket is none that HTTP allows.
    async with site.channel(options=(("grpc.default_authority", "localhost"),)) as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"
    await site.host.stop(0)


async def test_two_share_a_port_where_both_allow_it(kind: Kind) -> None:
    first = Site(kind, reuse_port=True)
    await first.start()
    second = Site(kind, first.listen, reuse_port=True)
    await second.start()
    for site in (first, second):
        site.core.echoes = True

    async def both_served() -> bool:
        # Which of the two gets a connection is the kernel's choice.
        async with first.channel() as channel:
            await calling(channel)(b"x", timeout=20)
        return bool(first.core.turns and second.core.turns)

    await until(both_served, "a call at each")
    for site in (first, second):
        await site.host.stop(0)


def test_the_native_host_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("auto") == ("native" if has_native() else "grpcio")
    assert chosen("grpcio") == "grpcio"
    older = ModuleType("grpchost")
    for found in (older, None):
        monkeypatch.setitem(sys.modules, "grpchost", found)
        assert chosen("auto") == "grpcio"
        with pytest.raises(LookupError, match="grpchost is not installed here, or is older"):
            chosen("native")


@pytest.mark.parametrize("folder", ["grpchost/server", "grpchost/python/grpchost", None])
def test_sources_of_the_native_host_are_none(tmp_path: Path, folder: str | None) -> None:
    """As in a clone without cargo, whose root or `grpchost/python` is on the path."""
    if folder is not None:
        (tmp_path / folder).mkdir(parents=True)
    path = tmp_path
    if folder is not None and "python" in folder:
        path = tmp_path / "grpchost" / "python"
        (path / "grpchost" / "__init__.py").write_text("from grpchost._grpchost import Host\n")
    program = (
        "import sys; installed = [entry for entry in sys.path if 'site-packages' not in entry]\n"
        f"sys.path[:] = [{str(path)!r}, *installed, {str(ROOT)!r}]\n"
        "from ratelimit.host.choice import chosen, has_native\n"
        "print(has_native(), chosen('auto'))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "False grpcio\n", done.stderr


async def _awaited(answer: object) -> bytes:
    return await answer  # type: ignore[no-any-return, misc]
