"""Consul's HTTP API as far as discovery needs it: one session, the token, and blocking queries.

Written on aiohttp: the maintained clients (py-consul) have no token files, no limit of connections, and leave all of
the rules of blocking queries to their users anyway.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self

import aiohttp
from yarl import URL

from discovery.consul.files import UnreadableError, tls_of, token_of
from discovery.consul.settings import ConsulSettings

WAIT_S: Final = 300.0
"""How long the agent may hold a blocking query; it adds up to a sixteenth."""
ANSWER_S: Final = 10.0
"""How long an answer may take beyond that."""
CONNECT_S: Final = 5.0
TOKEN_S: Final = 1.0
"""How often the token's file is looked at while answers are awaited."""
_KEPT_IDLE_S: Final = 30.0
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class UnreachableError(Exception):
    """The agent was not asked, or did not answer in time; the message says why, for the operator."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`index`: X-Consul-Index as it came, 0 where there was none. `headers` have lower-case names."""

    status: int
    index: int = 0
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)

    @property
    def filtered(self) -> bool:
        """The token may not read all that was asked for, and Consul says so (never to the anonymous token)."""
        return self.headers.get("x-consul-results-filtered-by-acls") == "true"

    @property
    def acls(self) -> str:
        """What ACLs do with who has no token, `allow` or `deny`; empty where Consul doesn't say (before 1.12)."""
        return self.headers.get("x-consul-default-acl-policy", "")

    @property
    def said(self) -> str:
        """The status and what came with it, on one line."""
        return f"{self.status} {' '.join(self.body[:200].decode('utf-8', 'replace').split())}".strip()

    def refusal(self) -> str:
        """Why this is not the answer that was asked for, in a sentence; empty for a 200."""
        if self.status == 200:
            return ""
        said = self.said
        match self.status:
            case 401 | 403:
                rights = '`service_prefix "" read` and `node_prefix "" read`'
                return f"permission denied ({said}); give a token with {rights}"
            case 429:
                return f"too many connections or requests ({said}); see `http_max_conns_per_client` of the agent"
            case 500 if "No path to datacenter" in said:
                return f"there is no such datacenter ({said}); check the datacenters that are asked for"
            case _:
                return f"the agent answers {said}"


class ConsulClient:
    """One agent. Use it as a context manager, or `close` it; one event loop uses it.

    Statuses are the caller's to judge: only what is no HTTP answer at all raises (UnreachableError). Paths are sent
    as they are: whoever puts a name into one quotes it. `requests` counts what was asked.
    """

    def __init__(self, settings: ConsulSettings) -> None:
        self._settings = settings
        self._base = settings.url.rstrip("/")
        self._token, self._tls = token_of(settings), tls_of(settings)
        self._is_tls = self._base.startswith("https:")
        self.requests = 0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """May be called twice; what is asked after that opens anew."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @property
    def anonymous(self) -> bool:
        """No token is sent."""
        try:
            return not self._token.value()
        except UnreadableError:
            return False

    async def token_turned(self) -> None:
        """Until the file has another token: what was asked with the one before may be held for minutes, and its
        answer is what that one may read."""
        used = self._token_if_any()
        while True:
            await asyncio.sleep(TOKEN_S)
            if self._token_if_any() != used:
                return

    @property
    def complaints(self) -> tuple[str, ...]:
        """Files that changed and cannot be read; what they said before is used."""
        return tuple(filter(None, (self._token.error, self._tls.error)))

    async def get(self, path: str, params: Mapping[str, str] | None = None, *, timeout: float = ANSWER_S) -> Answer:
        """One answer, now. The settings' namespace and partition are added."""
        return await self._ask("GET", path, params or {}, None, timeout)

    async def post(
        self, path: str, body: bytes, params: Mapping[str, str] | None = None, *, timeout: float = ANSWER_S
    ) -> Answer:
        """As `get`, with a JSON body."""
        return await self._ask("POST", path, params or {}, body, timeout)

    async def blocking(
        self, path: str, params: Mapping[str, str] | None = None, index: int = 0, *, wait_s: float = WAIT_S
    ) -> Answer:
        """An answer with an index other than `index`, or the same after `wait_s` and up to a sixteenth more; with 0
        at once."""
        waiting = dict(params or {})
        if index > 0:
            waiting |= {"index": str(index), "wait": f"{round(wait_s * 1000)}ms"}
        held = wait_s + wait_s / 16 if index > 0 else 0.0
        return await self._ask("GET", path, waiting, None, held + ANSWER_S)

    async def _ask(
        self, method: str, path: str, params: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        answer = await self._once(method, path, params, body, timeout)
        if answer.status == 403 and self._settings.token_file is not None:
            used = self._token.value()
            self._token.forget()
            if self._token_now() != used:
                return await self._once(method, path, params, body, timeout)
        return answer

    async def _once(
        self, method: str, path: str, params: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        url = URL(self._base + path, encoded=True).update_query(self._settings.enterprise_params | dict(params))
        token = self._token_now()
        self.requests += 1
        try:
            async with self._opened().request(
                method,
                url,
                data=body,
                headers={"x-consul-token": token} if token else None,
                timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_S),
                allow_redirects=False,  # the token is for this agent only
                ssl=self._context() if self._is_tls else True,
                server_hostname=self._settings.server_name or None,
            ) as response:
                content = await response.read()
        except (TimeoutError, aiohttp.ClientError, ssl.SSLError, OSError) as error:
            raise UnreachableError(self._reason(error)) from error
        headers = {key.lower(): value for key, value in response.headers.items()}
        return Answer(response.status, _index(headers.get("x-consul-index", "")), content, headers)

    def _opened(self) -> aiohttp.ClientSession:
        # Not when it is made: a client that was never used has nothing to close.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._settings.max_connections, keepalive_timeout=_KEPT_IDLE_S),
                # Compression costs both sides more than loopback, where an agent is, gives.
                headers={"accept-encoding": "identity", "user-agent": "swashplate"},
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _token_now(self) -> str:
        try:
            return self._token.value()
        except UnreadableError as error:
            raise UnreachableError(str(error)) from error

    def _token_if_any(self) -> str | None:
        try:
            return self._token.value()
        except UnreadableError:
            return None

    def _context(self) -> ssl.SSLContext:
        try:
            return self._tls.value()
        except UnreadableError as error:
            raise UnreachableError(str(error)) from error

    def _reason(self, error: Exception) -> str:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return f"the agent at {self._base} takes no connection within {CONNECT_S:g} s"
        if isinstance(error, asyncio.TimeoutError):
            return f"the agent at {self._base} does not answer"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return (
                f"the agent's certificate is not trusted: {error.certificate_error}; "
                "see the settings for its CA and its server name"
            )
        if isinstance(error, aiohttp.ServerDisconnectedError):
            return f"the agent at {self._base} closed the connection without an answer"
        if isinstance(error, aiohttp.ClientConnectorError):  # whose text speaks of ssl for plain http, too
            return f"the agent at {self._base} cannot be reached: {error.strerror or error.os_error}"
        return f"the agent at {self._base} cannot be reached: {error}"


def _index(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
