"""Where the counters are, from one URL and a few files."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

Address = tuple[str, int]
DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26379


class Topology(StrEnum):
    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


_SCHEMES: Final[Mapping[str, tuple[Topology, bool]]] = {
    "redis": (Topology.SINGLE, False),
    "rediss": (Topology.SINGLE, True),
    "unix": (Topology.SINGLE, False),
    "redis+sentinel": (Topology.SENTINEL, False),
    "rediss+sentinel": (Topology.SENTINEL, True),
    "redis+cluster": (Topology.CLUSTER, False),
    "rediss+cluster": (Topology.CLUSTER, True),
}


class SettingsError(ValueError):
    """What is wrong with a URL or a file it needs; without secrets."""


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """`addresses` are the server, the Sentinels, or some nodes of the Cluster; `path` is a Unix socket instead.

    Files are read with every new connection, so a rotated password or certificate is taken up by the next one.
    `answer_s`: a check without an answer for so long has failed, whatever its deadline, and the connection is given
    up. `connect_s`: for a connection to be made, name lookup, TLS and login included.
    """

    topology: Topology = Topology.SINGLE
    addresses: tuple[Address, ...] = (("127.0.0.1", DEFAULT_PORT),)
    path: str = ""
    database: int = 0
    master: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    password_file: Path | None = None
    sentinel_username: str = ""
    sentinel_password: str = field(default="", repr=False)
    sentinel_password_file: Path | None = None
    tls: bool = False
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    server_name: str = ""
    insecure: bool = False
    answer_s: float = 1.0
    connect_s: float = 2.0

    @property
    def place(self) -> str:
        """For people; without secrets."""
        if self.path:
            return f"unix:{self.path}"
        hosts = ",".join(written(address) for address in self.addresses)
        behind = f"/{self.master}" if self.master else ""
        return f"{hosts}{behind}" + (f"/{self.database}" if self.database else "")

    def context(self) -> ssl.SSLContext | None:
        """None without TLS. Raises SettingsError."""
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file, password="")  # or it would ask for one
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(str(f) for f in (self.ca_file, self.certificate_file, self.key_file) if f is not None)
            raise SettingsError(f"TLS for the store of counters: {error} (of {files})") from error
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def login(self) -> tuple[str, str]:
        """User and password; empty where there is none. Raises SettingsError."""
        return self.username, secret(self.password, self.password_file)


def secret(text: str, file: Path | None) -> str:
    """The text, or what the file holds. Raises SettingsError."""
    if file is None:
        return text
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the password cannot be read: {error}") from error


def written(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def redis_settings(url: str, given: RedisSettings | None = None) -> RedisSettings:
    """What a URL says, over `given` for what a URL does not say. Raises SettingsError.

    `redis://user:password@host:6379/0`, `rediss://` with TLS, `unix:///path?db=0`,
    `redis+sentinel://user:password@host1:26379,host2/master/0`, `redis+cluster://host1:6379,host2`; `rediss+...`.
    """
    try:
        split = urlsplit(url)
        topology, tls = _SCHEMES[split.scheme]
    except (KeyError, ValueError):
        shown = url.rpartition("@")[2]
        raise SettingsError(f"{shown!r} is no URL of a store; its scheme is one of {', '.join(_SCHEMES)}") from None
    user, _, hosts = split.netloc.rpartition("@")
    name, _, password = user.partition(":")
    base = replace(given or RedisSettings(), topology=topology, tls=tls)
    if user:
        base = replace(base, username=unquote(name), password=unquote(password))
    if split.scheme == "unix":
        return replace(base, path=unquote(split.path), database=_database(dict(parse_qsl(split.query)).get("db", "")))
    if split.query or split.fragment:
        raise SettingsError("a store's URL has no options; what a URL does not say has a setting of its own")
    port = SENTINEL_PORT if topology is Topology.SENTINEL else DEFAULT_PORT
    addresses = tuple(_address(host, port) for host in hosts.split(","))
    if topology is Topology.SINGLE and len(addresses) > 1:
        raise SettingsError("several servers are a Cluster or Sentinels: redis+cluster:// or redis+sentinel://")
    return _path(replace(base, addresses=addresses), split)


def _path(base: RedisSettings, split: SplitResult) -> RedisSettings:
    parts = [unquote(part) for part in split.path.strip("/").split("/") if part]
    if base.topology is Topology.SENTINEL:
        if not parts:
            raise SettingsError("Sentinels are asked for a master by name: redis+sentinel://host:26379/mymaster")
        base = replace(base, master=parts.pop(0))
    if len(parts) > 1 or (parts and base.topology is Topology.CLUSTER):
        raise SettingsError(f"{split.path!r} is no database" + (" (a Cluster has only 0)" if len(parts) == 1 else ""))
    return replace(base, database=_database(parts[0] if parts else ""))


def _database(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal()):
        raise SettingsError(f"{text!r} is no number of a database")
    return int(text or 0)


def _address(text: str, port: int) -> Address:
    try:
        split = urlsplit(f"//{text}")
        return unquote(split.hostname or "127.0.0.1"), split.port or port
    except ValueError:
        raise SettingsError(f"{text!r} is no host and port") from None
