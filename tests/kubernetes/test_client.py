"""What goes over the wire: headers, refusals, silence, broken streams, rotated tokens."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import kmock
import pytest
from aiohttp import web

from discovery.kubernetes.client import LISTS_AT_ONCE, Client, Timeouts
from discovery.kubernetes.credentials import CredentialSource
from discovery.kubernetes.errors import ApiError, CredentialsError, MalformedError, UnreachableError
from tests.e2e.harness.ports import free_port

PATH = "/api/v1/services"
LONG = Timeouts()
SHORT = Timeouts(connect_s=5.0, answer_s=0.3, whole_s=5.0)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def kubeconfig(path: Path, url: str, **user: str) -> CredentialSource:
    path.write_text(
        f"""{{current-context: test,
        contexts: [{{name: test, context: {{cluster: test, user: test}}}}],
        clusters: [{{name: test, cluster: {{server: "{url}"}}}}],
        users: [{{name: test, user: {user}}}]}}"""
    )
    return CredentialSource(path)


@pytest.fixture
async def client(kmock: kmock.RawHandler, tmp_path: Path) -> AsyncIterator[Client]:
    """One at kmock."""
    async with Client(kubeconfig(tmp_path / "config", str(kmock.url))) as client:
        yield client


@asynccontextmanager
async def serving(
    handler: Handler, tmp_path: Path, timeouts: Timeouts = LONG, *, path: str = PATH, **user: str
) -> AsyncIterator[Client]:
    """A client at a server of our own: for connections that hang or break, which kmock does not do."""
    app = web.Application()
    app.router.add_get(path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        credentials = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}", **user)
        async with Client(credentials, timeouts=timeouts) as client:
            yield client
    finally:
        await runner.cleanup()


async def lines(client: Client) -> list[bytes]:
    """All lines of a watch, to its end."""
    async with client.watch(PATH, {}) as groups:
        return [line async for group in groups for line in group]


async def test_a_list_asks_for_what_was_wanted(client: Client, kmock: kmock.RawHandler) -> None:
    kmock[f"get {PATH}"] << b"{}"
    assert await client.get(PATH, {"limit": "500"}, metadata_only=True) == b"{}"
    request = kmock[0]
    assert request.params == {"limit": "500"}
    assert request.headers["Accept"] == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    assert request.headers["Accept-Encoding"] == "gzip"


async def test_a_watch_gives_the_lines(client: Client, kmock: kmock.RawHandler) -> None:
    kmock[f"get {PATH}"] << (b'{"a":', b"1}\n\n", b'{"b":2}\n')
    assert await lines(client) == [b'{"a":1}', b'{"b":2}']
    assert kmock[0].params["watch"] == "true"


async def test_a_line_longer_than_any_buffer_is_one_line(tmp_path: Path) -> None:
    long = b"x" * 700_000

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(long + b"\nshort\n" + b"cut")
        return response

    async with serving(handler, tmp_path) as client:
        assert await lines(client) == [long, b"short"]


async def test_a_line_without_an_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discovery.kubernetes.client.LINE_LIMIT", 100_000)

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"x" * 10_000)
        return response

    async with serving(handler, tmp_path) as client:
        with pytest.raises(MalformedError):
            await lines(client)


async def test_a_refusal_is_kubernetes_own_words(client: Client, kmock: kmock.RawHandler) -> None:
    status = {
        "kind": "Status",
        "code": 403,
        "reason": "Forbidden",
        "message": "services is forbidden",
        "details": None,
    }
    kmock[f"get {PATH}"] << 403 << status
    with pytest.raises(ApiError, match="403 Forbidden: services is forbidden") as refused:
        await client.get(PATH, {})
    assert refused.value.status == 403
    assert not refused.value.expired


async def test_an_expired_version_is_told_apart(client: Client, kmock: kmock.RawHandler) -> None:
    kmock[f"get {PATH}"] << 410 << {"kind": "Status", "code": 410, "reason": "Expired"}
    with pytest.raises(ApiError) as refused:
        await lines(client)
    assert refused.value.expired


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("-7", 0.0), ("soon", 0.0), ("a date", 1000.0)],
)
async def test_retry_after_is_seconds_or_a_date(tmp_path: Path, header: str, seconds: float) -> None:
    if header == "a date":  # not among the parameters: processes that share the tests name them alike
        header = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds))

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(status=429, text="too many", headers={"Retry-After": header})

    async with serving(handler, tmp_path) as client:
        with pytest.raises(ApiError, match="429 Too Many Requests: too many") as refused:
            await client.get(PATH, {})
    assert refused.value.retry_after_s == pytest.approx(seconds, abs=100)


async def test_a_status_says_when_to_come_back_too(client: Client, kmock: kmock.RawHandler) -> None:
    kmock[f"get {PATH}"] << 503 << {"kind": "Status", "code": 503, "details": {"retryAfterSeconds": 9}}
    with pytest.raises(ApiError) as refused:
        await client.get(PATH, {})
    assert refused.value.retry_after_s == 9.0


async def test_nobody_there_is_unreachable(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with Client(kubeconfig(tmp_path / "config", url)) as client:
        with pytest.raises(UnreachableError, match=f"{url}: cannot connect"):
            await client.get(PATH, {})


@pytest.mark.parametrize("how", ["get", "watch"])
async def test_a_server_that_accepts_and_never_answers_is_unreachable(tmp_path: Path, how: str) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(1000)
        raise AssertionError

    short = Timeouts(connect_s=0.2, answer_s=0.2, whole_s=5.0)
    async with serving(handler, tmp_path, short) as client:
        with pytest.raises(UnreachableError, match="no answer in time"):
            await (client.get(PATH, {}) if how == "get" else lines(client))


async def test_a_list_that_stops_in_the_middle_is_unreachable(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"items":[')
        await asyncio.sleep(1000)
        raise AssertionError

    async with serving(handler, tmp_path, SHORT) as client:
        with pytest.raises(UnreachableError, match="no answer in time"):
            await client.get(PATH, {})


async def test_a_watch_that_is_cut_is_no_end(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with serving(handler, tmp_path) as client:
        with pytest.raises(UnreachableError):
            await lines(client)


async def test_a_quiet_watch_is_the_callers_to_judge(tmp_path: Path) -> None:
    quiet = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.wait_for(quiet.wait(), 10)
        await response.write(b"late\n")
        return response

    async with serving(handler, tmp_path, Timeouts(connect_s=5.0, answer_s=0.2, whole_s=0.2)) as client:
        async with client.watch(PATH, {}) as groups:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await anext(groups)
        async with client.watch(PATH, {}) as groups:
            quiet.set()
            assert await anext(groups) == [b"late"]


async def test_a_refused_token_is_read_anew_and_the_request_made_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers["Authorization"])
        if asked[-1] == "Bearer old":
            token.write_text("new\n")
            return web.Response(status=401)
        return web.Response(text="{}")

    async with serving(handler, tmp_path, tokenFile=str(token)) as client:
        assert await client.get(PATH, {}) == b"{}"
    assert asked == ["Bearer old", "Bearer new"]


async def test_a_token_that_stays_refused_is_asked_for_once(tmp_path: Path) -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Authorization", ""))
        return web.Response(status=401)

    async with serving(handler, tmp_path) as client:
        with pytest.raises(ApiError, match="401"):
            await client.get(PATH, {})
    assert len(asked) == 1


async def test_without_credentials_nothing_is_asked(tmp_path: Path) -> None:
    async with Client(CredentialSource(tmp_path / "none")) as client:
        with pytest.raises(CredentialsError, match="no such file"):
            await client.get(PATH, {})


async def test_redirects_do_not_take_the_token_elsewhere(client: Client, kmock: kmock.RawHandler) -> None:
    kmock[f"get {PATH}"] << 302 << {"Location": "/elsewhere"}
    with pytest.raises(ApiError) as refused:
        await client.get(PATH, {})
    assert refused.value.status == 302
    assert len(kmock) == 1


@pytest.mark.parametrize(
    ("status", "there"),
    [(200, True), (401, True), (403, True), (404, True), (429, False), (500, False), (502, False)],
)
async def test_who_refuses_us_is_there_and_who_cannot_answer_is_not(
    client: Client, kmock: kmock.RawHandler, status: int, there: bool
) -> None:
    kmock["get /readyz"] << status << "says the test"
    assert await client.answers() is there


async def test_who_accepts_and_says_nothing_is_not_there_even_while_all_lists_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discovery.kubernetes.client.PATIENCE_S", 0.2)
    answering = asyncio.Event()

    async def handler(_: web.Request) -> web.StreamResponse:
        await answering.wait()
        return web.Response(text="{}")

    async with serving(handler, tmp_path, path="/{tail:.*}") as client:
        lists = [asyncio.create_task(client.get(PATH, {})) for _ in range(LISTS_AT_ONCE)]
        await asyncio.sleep(0)
        assert not await client.answers()
        answering.set()
        assert await client.answers()
        await asyncio.gather(*lists)


async def test_nobody_there_is_not_there(tmp_path: Path) -> None:
    async with Client(kubeconfig(tmp_path / "config", f"http://127.0.0.1:{free_port()}")) as client:
        assert not await client.answers()
