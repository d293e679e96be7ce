"""What reaches a port that is no proper HTTP: refused in a line, and neither a 500 nor a traceback in the log."""

import asyncio
import gzip
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from io import StringIO

import pytest
import structlog
from aiohttp import web

from swashplate import logs
from swashplate.address import Address
from swashplate.http_server import HttpServer
from tests.e2e.harness.wait import until

BOUND = 1024
ENDED = web.AppKey("ENDED", list[BaseException | None])


async def _read(request: web.Request) -> web.Response:
    return web.Response(text=f"read {len(await request.read())}")


async def _much(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b"x" * 10_000)
            await asyncio.sleep(0)
    finally:
        request.app[ENDED].append(sys.exception())


async def _bug(_: web.Request) -> web.Response:
    raise RuntimeError("a bug")


@pytest.fixture
def ended() -> list[BaseException | None]:
    """How those that gave much have ended."""
    return []


@pytest.fixture
async def address(ended: list[BaseException | None]) -> AsyncIterator[Address]:
    app = web.Application(client_max_size=BOUND)
    app[ENDED] = ended
    app.add_routes([web.post("/", _read), web.get("/much", _much), web.get("/bug", _bug)])
    server = HttpServer(app, "a server", "--here")
    try:
        yield await server.start(Address("127.0.0.1", 0))
    finally:
        await server.stop()


@pytest.fixture
def log() -> Iterator[StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    out = StringIO()
    logs.configure("info", "json", out)
    yield out
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


async def said(address: Address, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(sent)
    async with asyncio.timeout(20):
        answer = await reader.readuntil(b"\r\n")
    writer.close()
    return answer


def post(body: bytes, encoding: bytes = b"") -> bytes:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % len(body)
    return head + (b"Content-Encoding: %b\r\n" % encoding if encoding else b"") + b"\r\n" + body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(post(b"not packed", b"gzip"), 400, id="no gzip"),
        pytest.param(post(b"not packed", b"deflate"), 400, id="no deflate"),
        pytest.param(post(b"not packed", b"br"), 400, id="an encoding that is not known"),
        pytest.param(post(gzip.compress(b"0" * 10_000_000), b"gzip"), 413, id="much, packed"),
        pytest.param(post(b"0" * (BOUND + 1)), 413, id="much"),
        pytest.param(post(b"0" * BOUND), 200, id="as much as there may be"),
        pytest.param(b"GET / HTTP/1.1\r\nHost x\r\n\r\n", 400, id="no header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 400, id="a long header"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, id="no length"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, id="no length of a chunk"
        ),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="HTTP/2"),
        pytest.param(b"GET http://[::1/x HTTP/1.1\r\nHost: x\r\n\r\n", 400, id="no URL"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400, id="TLS"),
    ],
)
async def test_what_is_wrong_with_a_request_is_its_callers_fault(
    address: Address, log: StringIO, sent: bytes, status: int
) -> None:
    assert int((await said(address, sent)).split()[1]) == status
    assert log.getvalue() == ""


async def test_who_goes_before_the_answer_leaves_no_traceback(
    address: Address, log: StringIO, ended: list[BaseException | None]
) -> None:
    async def all_ended() -> bool:
        return len(ended) == 3

    for _ in range(3):
        assert (await said(address, b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 200")
    await until(all_ended, "the pages to end")
    # Answered after what is said of those.
    await said(address, post(b""))
    assert log.getvalue() == ""


async def test_a_bug_of_ours_has_its_traceback(address: Address, log: StringIO) -> None:
    assert (await said(address, b"GET /bug HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 500")
    assert "RuntimeError: a bug" in log.getvalue()


async def test_with_debug_a_malformed_request_is_one_line(address: Address, log: StringIO) -> None:
    logs.configure("debug", "json", log)
    await said(address, b"GET / HTTP/1.1\r\nHost x\r\n\r\n")
    (line,) = (line for line in log.getvalue().splitlines() if "Error handling" in line)
    assert "Host x" in line
    assert "Traceback" not in line
