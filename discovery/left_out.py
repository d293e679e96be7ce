"""Instances that a source has seen and that get no requests: each with a reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from mesh.service import ServiceName


class Reason(StrEnum):
    """Why an instance is not used: one word for metrics and filters, beside the sentence of `LeftOut.detail`."""

    NOT_READY = "not-ready"
    CRITICAL = "critical"
    MAINTENANCE = "maintenance"
    TERMINATED = "terminated"
    NOT_SELECTED = "not-selected"
    WRONG_NAMESPACE = "wrong-namespace"
    NO_PORT = "no-such-port"
    NO_ADDRESS = "no-address"
    BAD_ADDRESS = "bad-address"
    BAD_LABEL = "bad-label"
    UNSUPPORTED = "unsupported"
    DUPLICATE = "duplicate"
    """Another instance of the same source has its address and port."""
    OTHER_SOURCE = "other-source"
    """A source of higher precedence says otherwise."""
    WEIGHT_ZERO = "weight-zero"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One instance that is not used.

    `instance` is the registry's own name of it ("pod checkout-7d9f-x2", "n1/web-1"). `address` may be empty and
    `port` 0 where it has none. `detail` is a sentence for the operator, with the fix where there is one.
    """

    instance: str
    address: str
    port: int
    reason: Reason
    detail: str


LeftOuts = Mapping[ServiceName, tuple[LeftOut, ...]]

NONE_LEFT_OUT: Final[LeftOuts] = MappingProxyType({})
