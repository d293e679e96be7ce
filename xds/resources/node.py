"""Who a client says it is: the parts of Envoy's Node that decide what it may see."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Version = tuple[int, int, int]
"""An Envoy release: major, minor, patch."""


@dataclass(frozen=True, slots=True)
class Node:
    """`locality` is (region, zone, sub_zone). `user_agent` is "envoy 1.40.0" or what the client calls itself;
    `version` is None unless it is an Envoy. `incremental_ads`: it speaks the incremental variant on an aggregated
    stream, so that a route table can reach it as single virtual hosts.
    """

    id: str
    cluster: str = ""
    locality: tuple[str, str, str] = ("", "", "")
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    user_agent: str = ""
    version: Version | None = None
    client_features: frozenset[str] = frozenset()
    incremental_ads: bool = False

    @property
    def is_grpc(self) -> bool:
        """Whether it is a gRPC library (all of them call themselves gRPC and something), not a proxy."""
        return self.user_agent.startswith("gRPC ")
