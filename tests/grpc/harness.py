"""gRPC without a proxy: clients and servers in processes of their own, and backends in the test's."""

import asyncio
import json
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import grpc
import grpc.aio

from swashplate.address import Address
from swashplate.bootstrap import Client, grpc_bootstrap
from tests.e2e.harness.wait import until

HERE = Path(__file__).parent
SAYS_WHAT_IS_MISSING = {"GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING": "true"}
"""Environment in which gRPC heeds what the server says of names that do not exist (gRFC A88)."""


class Told(NamedTuple):
    """What a caller's calls came to: by backend, by failure, and the longest one in seconds."""

    answers: dict[str, int]
    errors: dict[str, int]
    seconds: float

    @property
    def backends(self) -> set[str]:
        """Who answered; fails the test where a call failed."""
        assert not self.errors, self.errors
        return set(self.answers)


class Child:
    """A Python program of this directory with a bootstrap of its own. Lines in, lines out; ends with its stdin."""

    def __init__(self, bootstrap: Path, *command: str, env: dict[str, str] | None = None) -> None:
        self._command = (sys.executable, str(HERE / command[0]), *command[1:])
        self._env = {**os.environ, "GRPC_XDS_BOOTSTRAP": str(bootstrap), "GRPC_VERBOSITY": "NONE", **(env or {})}
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, env=self._env, limit=1 << 20
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 15)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def heard(self, within: float = 60.0) -> str:
        """The next line that it says."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), within)
        assert line, f"{self._command} ended"
        return line.decode().strip()

    def say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")


class Caller(Child):
    """A client; see caller.py."""

    def __init__(self, bootstrap: Path, env: dict[str, str] | None = None) -> None:
        super().__init__(bootstrap, "caller.py", env=env)
        self._turn = asyncio.Lock()

    async def call(self, target: str, times: int = 1, **how: Any) -> Told:
        """So many calls, one after another. `metadata`, `path`, `timeout`, `at_once` as in caller.py."""
        return await self._told(do="call", target=target, times=times, **how)

    async def start(self, target: str) -> None:
        """Calls without a pause from now on."""
        await self._do(do="start", target=target)

    async def so_far(self) -> Told:
        """What these calls came to since this was last asked."""
        return await self._told(do="so far")

    async def stop(self) -> Told:
        """Ends them; what all of them came to."""
        return await self._told(do="stop")

    async def _told(self, **command: Any) -> Told:
        return Told(**await self._do(**command))

    async def _do(self, **command: Any) -> Any:
        async with self._turn:
            self.say(json.dumps(command))
            return json.loads(await self.heard())


class Backend:
    """Answers any method of any service with its name. A call's metadata may ask for less:

    `fail-first: N` fails the first N calls that say so with UNAVAILABLE; `delay: S` waits.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.port = 0
        self.calls = 0
        self._failed = 0
        self._server = grpc.aio.server()

    def endpoint(self, **labels: str) -> dict[str, Any]:
        """This backend as an endpoint in a service file."""
        return {"address": "127.0.0.1", "port": self.port, **({"labels": labels} if labels else {})}

    async def __aenter__(self) -> Self:
        self._server.add_generic_rpc_handlers((_Any(self._answer),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        await self._server.stop(2)

    async def _answer(self, _request: bytes, context: Any) -> bytes:
        asked = dict(context.invocation_metadata())
        self.calls += 1
        if "delay" in asked:
            await asyncio.sleep(float(asked["delay"]))
        if self._failed < int(asked.get("fail-first", "0")):
            self._failed += 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "as asked")
        return self.name.encode()


class _Any(grpc.GenericRpcHandler):
    def __init__(self, answer: Any) -> None:
        self._handler: Any = grpc.unary_unary_rpc_method_handler(answer)

    def service(self, handler_call_details: Any) -> Any:
        return self._handler


async def until_answered(caller: Caller, target: str, backend: str) -> None:
    """Waits until a call is answered by that backend."""

    async def is_answered() -> bool:
        return set((await caller.call(target)).answers) == {backend}

    await until(is_answered, f"{backend} to answer for {target}")


def bootstrap_file(path: Path, server: Address, node: str, **metadata: str) -> Path:
    """The product's own bootstrap for a gRPC client or server, as a file."""
    client = Client(node_id=node, cluster=node, servers=(server,), metadata=metadata)
    path.write_text(json.dumps(grpc_bootstrap(client)))
    return path
