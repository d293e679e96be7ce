"""Both hosts, with a core that does what a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc
import pytest

from ratelimit.core.call import Turn
from ratelimit.counters.memory import MemoryStore
from ratelimit.host.choice import Kind, has_native
from ratelimit.host.gate import Gate
from ratelimit.host.gather import Answer, Failure
from ratelimit.host.grpcio_host import GrpcioHost
from ratelimit.host.native_host import NativeHost, Others
from ratelimit.host.open_call import OpenCall
from ratelimit.host.service import PATH
from tests.e2e.harness.wait import until

KINDS: Final = (
    "grpcio",
    pytest.param("native", marks=pytest.mark.skipif(not has_native(), reason="grpchost is not installed")),
)
OTHER: Final = "/test.Other/Say"
TALK: Final = "/test.Other/Talk"
KEEP: Final = "/test.Other/Keep"
"""Of the native host only: what grpcio's own server does with streams is not ours."""
_DEADLINE_S: Final = 20.0

Host = GrpcioHost | NativeHost
Call = Callable[..., Awaitable[bytes]]


class Door(MemoryStore):
    """A store that takes turns, or does not."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = True
        self._tell: Callable[[], None] = lambda: None

    @property
    def ready(self) -> bool:
        return self.is_open

    def on_ready(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def open(self) -> None:
        self.is_open = True
        self._tell()


class Core:
    """Keeps the turns it is given; answers each call with its own message if it is told to."""

    def __init__(self) -> None:
        self.echoes = False
        self.turns: list[Turn] = []

    def decide(self, turn: Turn) -> None:
        self.turns.append(turn)
        if self.echoes:
            echo(turn)

    @property
    def messages(self) -> list[bytes]:
        return [message for turn in self.turns for message in turn.messages]

    async def has(self, calls: int) -> None:
        """Waits until it has been given so many calls."""

        async def given() -> bool:
            return len(self.messages) >= calls

        await until(given, f"{calls} calls in turns", within=_DEADLINE_S, every=0.005)


def echo(turn: Turn) -> None:
    for call, message in enumerate(turn.messages):
        turn.answer(call, message)
    turn.flush()


class Site:
    """A host under test. `listen` is where it is reached."""

    def __init__(self, kind: Kind, listen: str = "127.0.0.1:0", patience_s: float = 3600, **options: Any) -> None:
        self.core, self.door = Core(), Door()
        self.kept: list[tuple[bytes, OpenCall]] = []
        beside = _beside(kind, self.kept)
        make: Any = NativeHost if kind == "native" else GrpcioHost
        self.host: Host = make(self.core.decide, Gate(self.door, patience_s), listen=listen, beside=beside, **options)
        self.listen = listen

    async def start(self) -> None:
        if port := await self.host.start():
            self.listen = f"127.0.0.1:{port}"

    @asynccontextmanager
    async def channel(self, **options: Any) -> AsyncIterator[grpc.aio.Channel]:
        # Of its own: else grpcio takes the connection that an earlier test had to the same port.
        settings = (("grpc.use_local_subchannel_pool", 1), *options.pop("options", ()))
        if "credentials" in options:
            made = grpc.aio.secure_channel(self.listen, options=settings, **options)
        else:
            made = grpc.aio.insecure_channel(self.listen, options=settings)
        async with made as channel:
            yield channel


def _beside(kind: Kind, kept: list[tuple[bytes, OpenCall]]) -> Any:
    if kind == "native":

        def say(request: bytes) -> Answer:
            if request == b"bug":
                raise RuntimeError("a bug")
            return Failure(5, "not here") if request == b"lost" else b"said " + request

        return Others({OTHER: say}, {TALK: say}, {KEEP: lambda request, call: kept.append((request, call))})

    async def serve(request: bytes, call: Any) -> bytes:
        if request == b"lost":
            await call.abort(grpc.StatusCode.NOT_FOUND, "not here")
        return b"said " + request

    handler: Any = grpc.unary_unary_rpc_method_handler(serve)  # type: ignore[arg-type]
    return (grpc.method_handlers_generic_handler("test.Other", {"Say": handler}),)


def calling(channel: grpc.aio.Channel, path: str = PATH) -> Call:
    call: Any = channel.unary_unary(path)
    return call  # type: ignore[no-any-return]


async def failure(answer: Awaitable[bytes]) -> tuple[grpc.StatusCode, str]:
    """The status that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await answer
    return raised.value.code(), raised.value.details() or ""


async def outcomes(*answers: Awaitable[bytes]) -> list[bytes | grpc.StatusCode]:
    """Of several calls at once."""

    async def one(answer: Awaitable[bytes]) -> bytes | grpc.StatusCode:
        try:
            return await answer
        except grpc.aio.AioRpcError as error:
            return error.code()

    return list(await asyncio.gather(*map(one, answers)))
