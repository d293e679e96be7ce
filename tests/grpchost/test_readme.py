"""The example of grpchost/README.md is run as it stands there, but for its address."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

pytest.importorskip("grpchost._grpchost", reason="grpchost is not built: there was no cargo")

README = Path(__file__).parents[2] / "grpchost" / "README.md"


@pytest.fixture
def socket(tmp_path: Path) -> Iterator[Path]:
    """Where the example listens."""
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    path = tmp_path / "socket"
    example = found[1].replace("127.0.0.1:8081", f"unix:{path}")
    assert example != found[1]
    process = subprocess.Popen([sys.executable, "-c", example])
    yield path
    process.terminate()
    process.wait()


async def test_the_example_echoes(socket: Path) -> None:
    authority = [("grpc.default_authority", "localhost")]  # README.md, "On the wire"
    async with grpc.aio.insecure_channel(f"unix:{socket}", options=authority) as channel:
        say = channel.unary_unary("/echo.Echo/Say")
        assert await say(b"hello", wait_for_ready=True, timeout=20) == b"hello"
