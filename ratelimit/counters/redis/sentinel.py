"""Sentinels: whom they name as the master.

Asked on connections like those of counters, so that certificates, keys and logins are read, checked and reported
the same way. redis-py trusts the system's authorities beside the file it is given, asks the terminal for the password
of a key, and hides what is wrong in the text of an object that is another each time.
"""

import asyncio
from dataclasses import replace

import hiredis

from ratelimit.counters.redis.connection import Connection, Reply, UnreachableError, connect
from ratelimit.counters.redis.settings import Address, RedisSettings, written


class Sentinels:
    """The one that answered last is asked first: another may hang."""

    def __init__(self, settings: RedisSettings) -> None:
        self._place = settings.place
        self._master = settings.master
        self._settings = replace(
            settings,
            username=settings.sentinel_username,
            password=settings.sentinel_password,
            password_file=settings.sentinel_password_file,
            database=0,
        )
        self._addresses = list(settings.addresses)

    async def master(self) -> Address:
        """Whom they name. Raises UnreachableError, with what each of them said."""
        said: list[str] = []
        for address in tuple(self._addresses):
            try:
                found = await self._named_by(address)
            except UnreachableError as error:
                said.append(str(error))
                continue
            self._addresses.remove(address)
            self._addresses.insert(0, address)
            return found
        raise UnreachableError(f"no Sentinel of {self._place} names a master: {'; '.join(sorted(said))}")

    async def _named_by(self, address: Address) -> Address:
        connection = await connect(self._settings, address, ())
        try:
            return await self._ask(connection, written(address))
        finally:
            connection.abort("it has been asked")

    async def _ask(self, connection: Connection, place: str) -> Address:
        try:
            async with asyncio.timeout(self._settings.connect_s):
                masters = await connection.ask("SENTINEL", "MASTERS")
        except TimeoutError as error:
            raise UnreachableError(f"{place} names no master within {self._settings.connect_s:g} s") from error
        if isinstance(masters, hiredis.ReplyError):
            raise UnreachableError(f"{place}: {masters}")
        try:
            return self._chosen(masters, place)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise UnreachableError(f"{place} does not answer as a Sentinel does") from error

    def _chosen(self, masters: Reply, place: str) -> Address:
        """`masters`: each a list of names and values in turn."""
        for one in masters:
            fields: dict[bytes, bytes] = dict(zip(one[::2], one[1::2], strict=True))
            if fields[b"name"].decode() != self._master:
                continue
            flags = set(fields[b"flags"].decode().split(","))
            if "master" not in flags or flags & {"s_down", "o_down"}:
                raise UnreachableError(f"{place}: {self._master!r} is down, and has no next one yet")
            return fields[b"ip"].decode(), int(fields[b"port"])
        raise UnreachableError(f"{place} knows no master {self._master!r}")
