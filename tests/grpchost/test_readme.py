"""The example of grpchost/README.md is run as it stands there, but for its address."""

import re
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

pytest.importorskip("grpchost._grpchost", reason="grpchost is not built: there was no cargo")

README = Path(__file__).parents[2] / "grpchost" / "README.md"


async def test_the_example_echoes(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    example = found[1].replace("127.0.0.1:8081", f"unix:{tmp_path}/socket")
    assert example != found[1]
    process = subprocess.Popen([sys.executable, "-c", example])
    try:
        authority = [("grpc.default_authority", "localhost")]  # README.md, "On the wire"
        async with grpc.aio.insecure_channel(f"unix:{tmp_path}/socket", options=authority) as channel:
            say = channel.unary_unary("/echo.Echo/Say")
            assert await say(b"hello", wait_for_ready=True, timeout=20) == b"hello"
    finally:
        process.terminate()
        process.wait()
