"""How the core answers, beyond what limits say."""

from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a request may be at most; a larger one is INVALID_ARGUMENT. Lengths of keys and values in characters."""

    request_bytes: int = MEBIBYTE
    descriptors: int = 256
    entries: int = 64
    text: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The response headers that speak of the strictest limit, as envoyproxy/ratelimit names them by default."""

    limit: str = "RateLimit-Limit"
    remaining: str = "RateLimit-Remaining"
    reset: str = "RateLimit-Reset"


@dataclass(frozen=True, slots=True)
class Options:
    """`shadow_mode` denies nothing, whatever is over. `quota_mode` takes every limit for a quota.

    `headers` are three of one limit; `structured_headers` are `RateLimit` and `RateLimit-Policy` of all
    (draft-ietf-httpapi-ratelimit-headers). `dynamic_metadata` says what was asked, and the metadata of the limits
    that were passed; `would_deny_metadata` which limits would have denied but for a shadow mode.

    `near_limit_ratio` is for statistics. `memo_bytes` bound what is remembered of requests, about. An answer that a
    store owes is awaited until `spare_s` before the caller's deadline, or a tenth of the time there is where that is
    more, so that one still arrives in time.
    """

    shadow_mode: bool = False
    quota_mode: bool = False
    headers: HeaderNames | None = None
    structured_headers: bool = False
    dynamic_metadata: bool = False
    would_deny_metadata: bool = False
    near_limit_ratio: float = 0.8
    bounds: Bounds = Bounds()
    memo_bytes: int = 32 * MEBIBYTE
    spare_s: float = 0.002


AS_ENVOYPROXY: Final = Options()
"""What envoyproxy/ratelimit does without settings."""
