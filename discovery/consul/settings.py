"""What an operator says about Consul."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

DEFAULT_WORDS: Final = ("", "default")
"""Consul's namespace and partition that need not be named."""


@dataclass(frozen=True, slots=True)
class ConsulSettings:
    """`url` is an agent's HTTP API, `http://127.0.0.1:8500`; ValueError for what is none, or names half of a pair."""

    url: str
    token_file: Path | None = None
    """Read anew when it changes, and after a refusal."""
    token: str = ""
    """From the environment only; `token_file` wins."""
    ca: Path | None = None
    """What the agent's certificate is checked against; none: the system's."""
    cert: Path | None = None
    key: Path | None = None
    server_name: str = ""
    """The name in the agent's certificate, where it is not the one in `url`."""
    namespace: str = ""
    partition: str = ""
    datacenters: tuple[str, ...] = ()
    """Empty: the agent's own."""
    tag: str = ""
    """Only instances with a tag that begins so (Rotor's: `tbn-cluster`). Empty: every service but `consul`."""
    tag_delimiter: str = "="
    """`TAG=name` renames; empty: the tag only selects."""
    filter: str = ""
    """Consul's own filter expression over instances."""
    address: Literal["service", "lan", "wan", "lan_ipv4", "lan_ipv6", "wan_ipv4", "wan_ipv6"] = "service"
    """Which address of an instance; the others are tagged addresses, of the service, else of the node."""
    critical: Literal["out", "unhealthy"] = "out"
    passing_only: bool = False
    """Leave out what warns, too."""
    max_connections: int = 150
    """To the agent, at most; an agent refuses more than `http_max_conns_per_client`, 200 by default."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"`{self.url}` is no address of a Consul agent; write `http://127.0.0.1:8500`")
        if (self.cert is None) != (self.key is None):
            raise ValueError("a client certificate for Consul needs its key, and a key its certificate")
        if parts.scheme == "http" and (self.ca or self.cert or self.server_name):
            raise ValueError(f"certificates for Consul, but `{self.url}` is no https address")
        if self.max_connections < MIN_CONNECTIONS:
            raise ValueError(
                f"{self.max_connections} connections are too few to follow Consul; at least {MIN_CONNECTIONS}"
            )

    @property
    def enterprise_params(self) -> dict[str, str]:
        """`ns` and `partition`, where they are not the default ones (which Consul without Enterprise refuses)."""
        said = {"ns": self.namespace, "partition": self.partition}
        return {key: value for key, value in said.items() if value not in DEFAULT_WORDS}


MIN_CONNECTIONS: Final = 8
