"""Kubernetes' HTTP API: lists and watches, as bytes."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Protocol, Self

import aiohttp
import msgspec
from yarl import URL

from discovery.kubernetes.credentials import Credentials, CredentialSource
from discovery.kubernetes.errors import (
    ApiError,
    CredentialsError,
    KubernetesError,
    MalformedError,
    UnreachableError,
)
from discovery.kubernetes.objects import Object
from discovery.kubernetes.presence import PATH, PATIENCE_S, Presence

LISTS_AT_ONCE: Final = 4
"""Bounds what pages under way take of memory. Watches are not counted: they only wait."""
LINE_LIMIT: Final = 16 * 1024 * 1024
"""etcd keeps objects of 1.5 MiB at most; JSON of one that is larger than this is no object."""
ERROR_LIMIT: Final = 64 * 1024
_LATE: Final = "no answer in time"


class Api(Protocol):
    """What a reflector needs of a client. Both raise KubernetesError."""

    async def get(self, path: str, params: Mapping[str, str], *, metadata_only: bool = False) -> bytes:
        """The answer's body."""
        ...

    def watch(
        self, path: str, params: Mapping[str, str], *, metadata_only: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[bytes]]]:
        """The stream's lines, those that came together in one go. It ends when the server ends it."""
        ...


class Server(Api, Protocol):
    """What the source needs of one, besides."""

    async def answers(self) -> bool:
        """Whether it is there, and can answer. Never raises KubernetesError."""
        ...


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds. `connect_s` includes TLS; `answer_s` is the longest silence before and within an answer to a `get`,
    and before a watch begins; `whole_s` is for the whole answer to a `get`."""

    connect_s: float = 10.0
    answer_s: float = 30.0
    whole_s: float = 120.0


class Cause(Object, frozen=True, rename="camel", gc=False):
    """One cause of a Status."""

    reason: str | None = ""
    message: str | None = ""


class StatusDetails(Object, frozen=True, rename="camel", gc=False):
    """More about a Status."""

    retry_after_seconds: int = 0
    causes: tuple[Cause, ...] | None = ()


class Status(Object, frozen=True, rename="camel", gc=False):
    """What the API says instead of an answer."""

    code: int = 0
    reason: str | None = ""
    message: str | None = ""
    details: StatusDetails | None = None

    def error(self) -> ApiError:
        """As an exception."""
        details = self.details or StatusDetails()
        return ApiError(self.code, self.reason or "", self.message or "", float(details.retry_after_seconds))


_STATUS: Final = msgspec.json.Decoder(Status)


class Client:
    """One cluster's API, with one session; use it as an async context manager."""

    def __init__(
        self,
        credentials: CredentialSource,
        *,
        timeouts: Timeouts = Timeouts(),
        presence: Presence | None = None,
    ) -> None:
        """`presence` is told of requests that are not answered."""
        self._credentials = credentials
        self._timeouts = timeouts
        self._presence = presence or Presence(random.uniform)
        self._lists = asyncio.Semaphore(LISTS_AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # No limit: watches hold theirs for minutes, and with a limit lists would wait for them.
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def place(self) -> str:
        """The cluster, for people: its address once it is known."""
        return self._credentials.place

    async def get(self, path: str, params: Mapping[str, str], *, metadata_only: bool = False) -> bytes:
        """The answer's body. Raises KubernetesError."""
        timeout = aiohttp.ClientTimeout(
            total=self._timeouts.whole_s,
            sock_connect=self._timeouts.connect_s,
            sock_read=self._timeouts.answer_s,
        )
        headers = {"Accept": _accept("PartialObjectMetadataList" if metadata_only else ""), "Accept-Encoding": "gzip"}
        async with self._lists, self._answer(path, params, headers, timeout) as response:
            return await response.read()

    async def answers(self) -> bool:
        """Whether the server is there: whoever refuses us is, but what says that it cannot answer now may be a proxy
        before nothing."""
        try:
            async with self._answer(PATH, {}, {}, aiohttp.ClientTimeout(PATIENCE_S)):
                return True
        except ApiError as error:
            return not error.passing
        except KubernetesError:
            return False

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str], *, metadata_only: bool = False
    ) -> AsyncGenerator[AsyncIterator[Sequence[bytes]], None]:
        """The stream's lines, those that came together in one go. Raises KubernetesError.

        How long silence may last is for the caller to say: the client only bounds the wait for the beginning.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeouts.connect_s)
        headers = {
            "Accept": _accept("PartialObjectMetadata" if metadata_only else ""),
            "Accept-Encoding": "identity",  # a compressor may hold back an event until more comes
        }
        async with (
            self._answer(path, {**params, "watch": "true"}, headers, timeout) as response,
            aclosing(_lines(response.content)) as lines,
        ):
            yield lines

    @asynccontextmanager
    async def _answer(
        self, path: str, params: Mapping[str, str], headers: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """A response of status 200, to be read inside."""
        credentials = await self._credentials.current()
        try:
            response = await self._begun(credentials, path, params, headers, timeout)
            if response.status == 401 and (renewed := await self._credentials.refused(credentials)) is not None:
                response.close()
                credentials = renewed
                response = await self._begun(credentials, path, params, headers, timeout)
            try:
                if response.status == 401 and self._credentials.problem:
                    raise CredentialsError(f"{credentials.server} answers 401, and {self._credentials.problem}")
                if response.status != 200:
                    raise await _refusal(response)
                yield response
            finally:
                _leave(response)
        except aiohttp.ClientError as error:
            raise UnreachableError(f"{credentials.server}: {_said(error)}") from error
        except TimeoutError as error:
            raise UnreachableError(f"{credentials.server}: {_LATE}") from error
        except OSError as error:
            raise UnreachableError(f"{credentials.server}: {error}") from error

    async def _begun(
        self,
        credentials: Credentials,
        path: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise UnreachableError("the client is closed")
        authorization = {"Authorization": credentials.authorization} if credentials.authorization else {}
        async with self._presence.unanswered(self._timeouts.connect_s + self._timeouts.answer_s):
            return await self._session.get(
                URL(credentials.server + path),
                params=params,
                headers={**headers, **authorization},
                timeout=timeout,
                ssl=credentials.tls if credentials.tls is not None else True,
                server_hostname=credentials.server_name or None,
                proxy=credentials.proxy or None,
                allow_redirects=False,  # they would take the token elsewhere
            )


def _leave(response: aiohttp.ClientResponse) -> None:
    """Ends a response, however much of it is still to come.

    A TLS connection that is closed waits for the other side to agree, which one that hangs never does.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def status_of(body: bytes) -> Status:
    """The Status in a body or an ERROR event. Raises MalformedError."""
    try:
        return _STATUS.decode(body)
    except msgspec.MsgspecError as error:
        raise MalformedError(f"not a Status of Kubernetes: {error}") from error


async def _refusal(response: aiohttp.ClientResponse) -> ApiError:
    body = await response.content.read(ERROR_LIMIT)
    try:
        status = status_of(body)
    except MalformedError:  # a proxy's page, or an API server's plain text
        status = Status()
    said = status.error()
    return ApiError(
        response.status,
        said.reason or response.reason or "",
        said.message or body.decode(errors="replace").strip()[:200],
        max(said.retry_after_s, _retry_after_s(response.headers.get("Retry-After", ""))),
    )


def _retry_after_s(header: str) -> float:
    """Seconds or an HTTP date (RFC 9110, 10.2.3); 0 for neither."""
    if header.isdecimal():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    return max((at - datetime.now(UTC)).total_seconds(), 0.0) if at.tzinfo is not None else 0.0


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[Sequence[bytes], None]:
    # Not the reader's own lines: it refuses those longer than its buffer, and a slice with 1,000 endpoints is one.
    parts: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            parts.append(chunk)
            size += len(chunk)
        else:
            parts.append(head)
            lines = [line for line in b"".join(parts).split(b"\n") if line.strip()]
            parts, size = [tail], len(tail)
            if lines:
                yield lines
        if size > LINE_LIMIT:
            raise MalformedError(f"a line of more than {LINE_LIMIT} bytes in a watch")


def _accept(kind: str) -> str:
    return f"application/json;as={kind};g=meta.k8s.io;v=v1" if kind else "application/json"


def _said(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}; is certificate-authority the right one?"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ServerTimeoutError):
        return _LATE
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed before an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer broke off"
    return str(error) or type(error).__name__
