"""Keys under a prefix of Consul's KV store, followed as a folder of files.

One blocking query has all of them. `keys` says what an answer means; this is the part that asks.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import msgspec

from discovery.consul.blocking import Bucket, Heard
from discovery.consul.client import Answer, ConsulClient, UnreachableError
from discovery.consul.gate import Gate
from discovery.consul.keys import Keys, Pair, Read
from discovery.consul.question import BURST, PER_S, NoAnswerError, Question
from discovery.consul.settings import ConsulSettings
from operator_files.folder import Look
from operator_files.tree import SUFFIXES

WAIT_S: Final = 60.0
"""How long the agent may hold the question. One that began anew just between two questions lets an old index wait for
all of that; there are few such questions, so asking each minute costs nothing."""
RETRY_S: Final = 10.0
"""How long the next attempt waits at most after a failure that is not the agent's: a right that is lacking, say."""
_MISSING: Final = 404
_DENIED: Final = 403
_DOUBTS: Final = 2
"""So many failures in a row are told."""


def is_operator_file(key: str) -> bool:
    """As in a directory, and names without any suffix too, as nobody writes one in a key/value store. What begins
    with a dot is left out, and so are keys that end in `/`, with which folders are made in Consul's UI."""
    *above, name = key.split("/")
    if not name or any(not level or level.startswith(".") for level in (*above, name)):
        return False
    return name.endswith(SUFFIXES) or "." not in name


def is_one_level(key: str) -> bool:
    """A key directly under the prefix, of any name but those with a dot first."""
    return bool(key) and "/" not in key and not key.startswith(".")


class KvFolder:
    """The keys below `prefix`, whole levels: `routes` means `routes/a`, not `routes-old/a`.

    The datacenter is the agent's own, or the only one that the settings name. A file's name is its key without the
    prefix, for those that are `wanted`; problems show it as `consul:PREFIX/KEY`.
    """

    def __init__(
        self,
        settings: ConsulSettings,
        prefix: str,
        *,
        wanted: Callable[[str], bool] = is_operator_file,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """ValueError for an empty prefix, which would be all that Consul keeps for anybody."""
        self._prefix = "/".join(level for level in prefix.split("/") if level)
        if not self._prefix:
            raise ValueError("a prefix of keys is needed; write `swashplate/routes`, say")
        self._prefix += "/"
        self._settings, self._wanted, self._clock = settings, wanted, clock
        self._params = {"dc": settings.datacenters[0]} if len(settings.datacenters) == 1 else {}
        self._partial = False

    @property
    def place(self) -> str:
        return f"consul:{self._prefix}"

    @property
    def notes(self) -> tuple[str, ...]:
        """That not all keys are seen, where Consul says so."""
        if not self._partial:
            return ()
        return (f"the token may not read all keys under `{self._prefix}`; give it `key_prefix` read",)

    def shown(self, key: str) -> str:
        return self.place + key

    async def looks(self, known: Collection[str]) -> AsyncGenerator[Look, None]:
        """See `Folder`."""
        keys = Keys(known)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(ConsulClient(self._settings))
            asking = _Asking(client, f"/v1/kv/{quote(self._prefix)}", self._params, self._clock)
            stack.push_async_callback(asking.stop)
            while True:
                try:
                    answer, heard = await asking.heard(keys.confirm_at)
                    found = self._pairs(answer, asking)
                    read = await self._read(client, keys.lost(found), found, asking)
                except NoAnswerError as error:
                    if (reason := asking.said(error)) and (failure := keys.failed(reason)) is not None:
                        yield failure
                    continue
                asking.went_well()
                self._partial = answer.filtered
                for look in keys.answered(found, heard.worth, read, self._clock()):
                    yield look

    def _pairs(self, answer: Answer, asking: "_Asking") -> dict[str, Pair]:
        """The wanted keys of an answer. Raises NoAnswerError."""
        if answer.status == _MISSING:
            return {}
        try:
            pairs = _DECODER.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise asking.failed(f"what answers is no Consul agent ({error}); check the address") from error
        named = ((pair.Key.removeprefix(self._prefix), pair) for pair in pairs if pair.Key.startswith(self._prefix))
        return {
            key: Pair(pair.Value or b"", pair.CreateIndex, pair.ModifyIndex)
            for key, pair in named
            if self._wanted(key)
        }

    async def _read(
        self, client: ConsulClient, lost: Iterable[str], found: Mapping[str, Pair], asking: "_Asking"
    ) -> Read:
        """Whether what an answer lacks is gone or may not be read: only a read of a single key says so, as a list is
        the same either way for who has no token. Raises NoAnswerError, too where nothing may be read."""
        if not found and await self._status(client, "", asking) == _DENIED:
            raise asking.failed(
                f"permission denied: the token may not read the keys under `{self._prefix}`; "
                f'give one with `key_prefix "{self._prefix}" {{ policy = "read" }}`',
                token=True,
            )
        statuses = {key: await self._status(client, key, asking) for key in sorted(lost)}
        return Read(
            frozenset(key for key, status in statuses.items() if status == _DENIED),
            frozenset(key for key, status in statuses.items() if status == 200),
        )

    async def _status(self, client: ConsulClient, key: str, asking: "_Asking") -> int:
        try:
            answer = await client.get(f"/v1/kv/{quote(self._prefix + key)}", self._params)
        except UnreachableError as error:
            raise asking.failed(str(error), agent=True) from error
        if answer.status not in (200, _DENIED, _MISSING):
            raise asking.failed(answer.refusal(), agent=True)
        return answer.status


class _Asking:
    """One question and the gate before it: while no agent answers, nothing is asked but the gate's own question."""

    def __init__(
        self, client: ConsulClient, path: str, params: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        self._turned = asyncio.Event()
        self._gate = Gate(client, params, on_turn=lambda *_: self._turned.set(), clock=clock)
        self._question = Question(
            _KvClient(client), path, {**params, "recurse": ""}, shared=Bucket(BURST, PER_S), clock=clock
        )
        self._clock = clock
        self._failures = 0
        self._told = ""
        self._looking = asyncio.create_task(self._gate.run(), name=f"gate before {path}")
        self._following = asyncio.create_task(self._follow_token(client), name=f"token for {path}")

    async def stop(self) -> None:
        self._looking.cancel()
        self._following.cancel()
        await asyncio.gather(self._looking, self._following, return_exceptions=True)

    async def heard(self, confirm_at: float | None) -> tuple[Answer, Heard]:
        """The next good answer; at `confirm_at` one without an index. Raises NoAnswerError."""
        if not self._gate.is_open:
            if self._told != self._gate.reason:
                raise NoAnswerError(self._gate.reason)
            await self._gate.opened()
            self._question.ask_anew()
        wait_s = WAIT_S if confirm_at is None else min(max(confirm_at - self._clock(), 0.0), WAIT_S)
        heard = asyncio.create_task(self._question.heard(wait_s=wait_s or WAIT_S, again=wait_s == 0))
        try:
            await self._until(heard)
            if not heard.done():
                raise NoAnswerError(self._gate.reason)
            answer, found = heard.result()
        finally:
            heard.cancel()
            await asyncio.wait((heard,))
        self._gate.heard()
        return answer, found

    def failed(self, reason: str, *, agent: bool = False, token: bool = False) -> NoAnswerError:
        """The last answer was none after all."""
        return self._question.failed(NoAnswerError(reason, agent=agent, token=token))

    def went_well(self) -> None:
        self._failures, self._told = 0, ""

    def said(self, error: NoAnswerError) -> str:
        """What to tell of a failure; empty for one that may be over with the next attempt."""
        self._failures += 1
        if error.agent or error.token:
            self._gate.doubt(token=error.token)
        if not self._gate.is_open:
            self._told = self._gate.reason
            return self._told
        return "" if error.agent and self._failures < _DOUBTS else str(error)

    async def _follow_token(self, client: ConsulClient) -> None:
        while True:
            await client.token_turned()
            self._gate.doubt(token=True)
            self._question.ask_anew()

    async def _until(self, heard: asyncio.Task[tuple[Answer, Heard]]) -> None:
        """Until it was heard, or the gate is shut. What failed is asked again before long."""
        while not heard.done() and self._gate.is_open:
            self._turned.clear()
            turned = asyncio.create_task(self._turned.wait())
            timeout = RETRY_S if self._question.failing else None
            try:
                done, _ = await asyncio.wait((heard, turned), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                turned.cancel()
            if not done:
                self._question.wake()


@dataclass(frozen=True, slots=True)
class _KvAnswer(Answer):
    """A 404 says that there is no key, or none that may be read."""

    def refusal(self) -> str:
        if self.status == _MISSING:
            return ""
        if self.status == _DENIED:
            return f"permission denied ({self.said}); give a token with `key_prefix` read"
        return Answer.refusal(self)


class _KvClient:
    """The client, with answers about keys."""

    def __init__(self, client: ConsulClient) -> None:
        self._client = client

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        return await self._client.get(path, params)

    async def post(self, path: str, body: bytes, params: Mapping[str, str] | None = None) -> Answer:
        return await self._client.post(path, body, params)

    async def blocking(
        self, path: str, params: Mapping[str, str] | None = None, index: int = 0, *, wait_s: float = WAIT_S
    ) -> Answer:
        answer = await self._client.blocking(path, params, index, wait_s=wait_s)
        return _KvAnswer(answer.status, answer.index, answer.body, answer.headers)


class _Pair(msgspec.Struct):
    """As Consul writes it; msgspec reads base64 into bytes."""

    Key: str
    CreateIndex: int
    ModifyIndex: int
    Value: bytes | None = None


_DECODER: Final = msgspec.json.Decoder(list[_Pair])
