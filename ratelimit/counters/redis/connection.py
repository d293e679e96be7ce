"""One connection to a server: commands go in, replies come out in the same order. Nothing is ever sent twice."""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis

from ratelimit.counters.redis.settings import Address, RedisSettings, SettingsError, written

Reply = Any
"""What hiredis makes of it: bytes, int, None, a list of those, or hiredis.ReplyError as a value."""


pack_command = cast("Callable[[tuple[object, ...]], bytes]", hiredis.pack_command)
"""A command of str, bytes and numbers. (hiredis' own stub knows commands of one word only.)"""


class UnreachableError(Exception):
    """No connection that checks can be sent on; the message says why, for the operator."""


class Connection(asyncio.Protocol):
    """Made by `connect`. `lost` is done when it has ended, with the reason; `on_lost` is told it at that moment, from
    when on nothing can be sent."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reader = hiredis.Reader()
        self._sinks: deque[Callable[[Reply], None]] = deque()
        self._transport: asyncio.Transport | None = None
        self.on_lost: Callable[[str], None] | None = None

    def send(self, commands: bytes, sinks: Sequence[Callable[[Reply], None]]) -> None:
        """Sends packed commands, and hands the reply of each to its sink. After the connection's end nothing is sent
        and no sink is called any more."""
        if self._transport is None or self.lost.done():
            return
        self._sinks.extend(sinks)
        self._transport.write(commands)

    async def ask(self, *command: str | bytes | int) -> Reply:
        """One reply; an error is a value. Raises UnreachableError where the connection ends before it."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answered(reply: Reply) -> None:
            if not answer.done():
                answer.set_result(reply)

        self.send(pack_command(command), (answered,))
        await asyncio.wait((answer, self.lost), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise UnreachableError(f"{self.place}: {self.lost.result()}")
        return answer.result()

    def abort(self, reason: str) -> None:
        """Ends it now; replies that are still to come are not heard."""
        self._end(reason)
        if self._transport is not None:
            self._transport.abort()

    def _end(self, reason: str) -> None:
        if self.lost.done():
            return
        self._sinks.clear()
        self.lost.set_result(reason)
        if self.on_lost is not None:
            self.on_lost(reason)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while True:
            try:
                reply = self._reader.gets()
            except hiredis.ProtocolError:
                self.abort("it does not speak Redis' protocol")
                return
            if reply is False:
                return
            if not self._sinks:
                self.abort("it answers what it was not asked")
                return
            self._sinks.popleft()(reply)

    def eof_received(self) -> None:
        self._end("it closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self._end(str(error) if error else "it closed the connection")


async def connect(settings: RedisSettings, address: Address, scripts: Sequence[str]) -> Connection:
    """A connection that is logged in, with the database chosen and the scripts loaded, to a server that takes writes.
    Raises UnreachableError."""
    place = f"unix:{settings.path}" if settings.path else written(address)
    connection = Connection(place)
    try:
        async with asyncio.timeout(settings.connect_s):
            await _open(settings, address, connection)
            await _greet(settings, connection, scripts)
    except BaseException as error:
        connection.abort("it was not made in time")
        if isinstance(error, UnreachableError | SettingsError | OSError):
            raise UnreachableError(_reason(place, settings, error)) from error
        raise
    return connection


async def _open(settings: RedisSettings, address: Address, connection: Connection) -> None:
    loop, context = asyncio.get_running_loop(), settings.context()
    if settings.path:
        await loop.create_unix_connection(lambda: connection, settings.path)
        return
    host, port = address
    name = (settings.server_name or host) if context else None
    await loop.create_connection(lambda: connection, host, port, ssl=context, server_hostname=name)


async def _greet(settings: RedisSettings, connection: Connection, scripts: Sequence[str]) -> None:
    user, password = settings.login()
    if password:
        login = ("AUTH", user, password) if user else ("AUTH", password)
        _accepted(await connection.ask(*login), "it refuses the login")
    if settings.database:
        _accepted(await connection.ask("SELECT", settings.database), f"it has no database {settings.database}")
    for script in scripts:
        _accepted(await connection.ask("SCRIPT", "LOAD", script), "it takes no scripts")
    role = await connection.ask("ROLE")
    # A user without the right to ask it (an error here) can still count.
    if isinstance(role, list) and role and role[0] == b"slave":
        raise UnreachableError("it is a replica, and takes no writes")
    await connection.ask("CLIENT", "SETNAME", "swashplate")


def _accepted(reply: Reply, otherwise: str) -> None:
    if isinstance(reply, hiredis.ReplyError):
        raise UnreachableError(f"{otherwise}: {reply}")


def _reason(place: str, settings: RedisSettings, error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"{place} takes no connection within {settings.connect_s:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"{place}: its certificate is not trusted: {error.verify_message}; see the settings for the CA and name"
        )
    if isinstance(error, SettingsError):
        return str(error)
    if str(error).startswith(place):
        return str(error)
    return f"{place}: {error}"
