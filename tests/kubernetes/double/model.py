"""A Kubernetes API in memory with an etcd-like history, and every fault that a real one can't be told to make.

Not kmock: its history is a list of answers, and what is at stake here is what a server makes of its history. One
resource type; objects are Services whose `externalName` is their content. Time is the event loop's, so that tests run
in fake time. Requests are kept, to be counted.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, NamedTuple

import msgspec

from discovery.kubernetes.errors import ApiError, KubernetesError, UnreachableError
from discovery.kubernetes.objects import Key

BOOKMARK_S: Final = 60.0
Streams = Literal["yes", "refused", "unending", "ignored"]
"""How the server answers `sendInitialEvents`: as asked; 422; all objects without a mark of their end; nothing."""


class Asked(NamedTuple):
    """A request: when (the loop's time), `list`, `watch` or `stream`, and its parameters."""

    at: float
    verb: str
    params: Mapping[str, str]


class _Change(NamedTuple):
    revision: int
    type: str
    key: Key
    body: Mapping[str, Any]


_WAKE: Final = b""
_TICK_S: Final = 1e-4
"""Sums of seconds are not exact, and what is left over would never pass in fake time."""


class _Stream:
    """An open watch: what is said to it outside of the history (None: the end). A deaf one gives nothing any more."""

    def __init__(self) -> None:
        self.deaf = False
        self._said: asyncio.Queue[bytes | KubernetesError | None] = asyncio.Queue()

    def say(self, word: bytes | KubernetesError | None) -> None:
        self._said.put_nowait(word)

    async def next(self, within_s: float) -> bytes | KubernetesError | None:
        """_WAKE where there may be news in the history, or the time is over."""
        while True:
            try:
                async with asyncio.timeout(None if self.deaf else max(within_s, 0.0)):
                    word = await self._said.get()
            except TimeoutError:
                return _WAKE
            if not self.deaf:
                return word


class ModelApi:
    """Implements `discovery.kubernetes.client.Api`.

    `fault`: what every request gets until it is taken away. `once`: faults for the next requests, one each (None: no
    fault). `hangs`: requests get no answer. `slow_s`: how old lists are when they arrive. `lists_empty`: lists and
    streams say that there are no objects; `lies` is asked for it.
    """

    def __init__(self, *, page: int = 500, streams: Streams = "yes") -> None:
        self.revision = 1000
        self.objects: dict[Key, Mapping[str, Any]] = {}
        self.asked: list[Asked] = []
        self.streams: Streams = streams
        self.fault: KubernetesError | None = None
        self.once: deque[KubernetesError | None] = deque()
        self.hangs = self.ends_at_once = self.lists_empty = False
        self.lies: Callable[[], bool] = lambda: self.lists_empty
        self.expire_pages = 0
        self.slow_s = 0.0
        self._page = page
        self._compacted = 1000
        self._log: list[_Change] = []
        self._open: list[_Stream] = []
        self._snapshots: dict[str, tuple[int, list[Mapping[str, Any]]]] = {}

    # What happens in the cluster.

    def put(self, name: str, content: str = "", namespace: str = "a") -> None:
        """Makes or changes an object."""
        key = Key(namespace, name)
        self.revision += 1
        body = {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "uid": f"{namespace}-{name}",
                "resourceVersion": str(self.revision),
            },
            "spec": {"externalName": content},
        }
        self._happened("MODIFIED" if key in self.objects else "ADDED", key, body)
        self.objects[key] = body

    def delete(self, name: str, namespace: str = "a") -> None:
        """The object is gone."""
        key = Key(namespace, name)
        body = self.objects.pop(key)
        self.revision += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.revision)}
        self._happened("DELETED", key, {**body, "metadata": metadata})

    def compact(self) -> None:
        """Forgets the history up to now, and all continue tokens."""
        self._compacted = self.revision
        self._log.clear()
        self._snapshots.clear()

    def start_over(self, revision: int = 10) -> None:
        """A store that has nothing, and counts from less; as after a loss. Ends all connections."""
        self.objects.clear()
        self.revision = revision
        self.compact()
        self.cut()

    @property
    def contents(self) -> dict[Key, str]:
        """What a reflector shall have in the end."""
        return {key: body["spec"]["externalName"] for key, body in self.objects.items()}

    # What happens to connections.

    def cut(self) -> None:
        """Open watches break."""
        self._all(UnreachableError("the connection broke"))

    def end(self) -> None:
        """Open watches end well."""
        self._all(None)

    def say(self, line: bytes) -> None:
        """Open watches get this line."""
        self._all(line)

    def deafen(self) -> None:
        """Open watches are half open: nothing comes any more, not even an end."""
        for stream in self._open:
            stream.deaf = True

    def expire_live(self) -> None:
        """Open watches are told that their version is too old."""
        self.compact()
        self.say(_line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}))

    @property
    def watches(self) -> int:
        """How many are open."""
        return len(self._open)

    @property
    def hears(self) -> bool:
        """Whether a watch is open that gives what happens."""
        return any(not stream.deaf for stream in self._open)

    def count(self, verb: str = "", since: float = 0.0) -> int:
        """Requests so far."""
        return sum(1 for asked in self.asked if (not verb or asked.verb == verb) and asked.at >= since)

    # What the reflector asks.

    async def get(self, path: str, params: Mapping[str, str], *, metadata_only: bool = False) -> bytes:
        await self._ask("list", params)
        if (continued := params.get("continue", "")) and self.expire_pages > 0:
            self.expire_pages -= 1
            raise ApiError(410, "Expired", "The provided continue parameter is too old")
        if continued:
            token, at = continued.split(":")
            if token not in self._snapshots:
                raise ApiError(410, "Expired", "The provided continue parameter is too old")
            revision, items = self._snapshots[token]
        else:
            items = [] if self.lies() else list(self.objects.values())
            token, at, revision = str(len(self.asked)), "0", self.revision
        size = min(int(params.get("limit", "1000000")), self._page) if "limit" in params else len(items)
        page, rest = items[int(at) : int(at) + size], items[int(at) + size :]
        meta = {"resourceVersion": str(revision)}
        if rest:
            self._snapshots[token] = (revision, items)
            meta["continue"] = f"{token}:{int(at) + size}"
        await asyncio.sleep(self.slow_s)
        return msgspec.json.encode({"kind": "ServiceList", "metadata": meta, "items": page})

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str], *, metadata_only: bool = False
    ) -> AsyncGenerator[AsyncIterator[Sequence[bytes]], None]:
        initial = "sendInitialEvents" in params
        await self._ask("stream" if initial else "watch", params)
        if initial and self.streams == "refused":
            raise ApiError(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch")
        since = self.revision if initial else int(params["resourceVersion"])
        if since < self._compacted:
            raise ApiError(410, "Expired", f"too old resource version: {since}")
        stream = _Stream()
        self._open.append(stream)
        try:
            yield self._lines(stream, since, float(params["timeoutSeconds"]), initial)
        finally:
            self._open.remove(stream)

    async def _lines(
        self, stream: _Stream, since: int, timeout_s: float, initial: bool
    ) -> AsyncIterator[Sequence[bytes]]:
        clock = asyncio.get_running_loop().time
        end, bookmark = clock() + timeout_s, clock() + BOOKMARK_S
        if initial and self.streams != "ignored":
            if self.objects and not self.lies():
                yield [_line("ADDED", body) for body in self.objects.values()]
            if self.streams == "yes":
                yield [_bookmark(since, {"k8s.io/initial-events-end": "true"})]
        while clock() < end - _TICK_S and not self.ends_at_once:
            if lines := [_line(change.type, change.body) for change in self._log if change.revision > since]:
                since = self.revision
                yield lines
                continue
            word = await stream.next(min(end, bookmark) - clock())
            if isinstance(word, KubernetesError):
                raise word
            if word is None:
                return
            if word:
                yield [word]
            elif clock() >= bookmark - _TICK_S:
                bookmark = clock() + BOOKMARK_S
                yield [_bookmark(since)]

    async def _ask(self, verb: str, params: Mapping[str, str]) -> None:
        self.asked.append(Asked(asyncio.get_running_loop().time(), verb, params))
        if self.hangs:
            await asyncio.sleep(30)
            raise UnreachableError("no answer in time")
        fault = self.once.popleft() if self.once else self.fault
        if fault is not None:
            raise fault

    def _happened(self, type_: str, key: Key, body: Mapping[str, Any]) -> None:
        self._log.append(_Change(self.revision, type_, key, body))
        self._all(_WAKE)

    def _all(self, word: bytes | KubernetesError | None) -> None:
        for stream in self._open:
            stream.say(word)


def _line(type_: str, body: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"type": type_, "object": body})


def _bookmark(revision: int, annotations: Mapping[str, str] | None = None) -> bytes:
    meta = {"resourceVersion": str(revision), "annotations": annotations}
    return _line("BOOKMARK", {"kind": "Service", "metadata": meta})
