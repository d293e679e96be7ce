"""Settings of the rate limit service: what it counts by, how it answers, and where it listens when it is alone."""

from datetime import timedelta
from typing import Final, Literal

from pydantic import BaseModel, Field

from swashplate.address import Address
from swashplate.setting_types import (
    AddressSetting,
    Duration,
    HeaderSetting,
    KeyPrefixSetting,
    ListenSetting,
    PathSetting,
)

RATELIMIT_PREFIX: Final = "ratelimit_"
"""What the flags of `swashplate ratelimit` leave out: there, `ratelimit_config` is `--config`."""


class LimitFields(BaseModel):
    """Limits, and how requests are answered."""

    ratelimit_config: PathSetting | None = Field(
        None,
        description=(
            "Directory of limit files, in envoyproxy/ratelimit's form (or one such file). With it, this server "
            "answers Envoy's rate limit calls. Edits are followed."
        ),
    )
    ratelimit_merge_domains: bool = Field(
        False, description="Several limit files may describe one domain; their descriptors are then put together."
    )
    ratelimit_shadow_mode: bool = Field(
        False, description="Deny nothing: requests over their limits are counted, and let through."
    )
    ratelimit_quota_mode: bool = Field(
        False, description="Take every limit for a quota: a request is denied when all of its limits are over."
    )
    ratelimit_headers: bool = Field(
        False,
        description="Answer with headers that speak of the strictest limit: limit, remaining, seconds to reset.",
    )
    ratelimit_limit_header: HeaderSetting = Field("RateLimit-Limit", description="Name of the header with the limit.")
    ratelimit_remaining_header: HeaderSetting = Field(
        "RateLimit-Remaining", description="Name of the header with what remains of it."
    )
    ratelimit_reset_header: HeaderSetting = Field(
        "RateLimit-Reset", description="Name of the header with the seconds until it begins anew."
    )
    ratelimit_structured_headers: bool = Field(
        False,
        description="Answer with the headers RateLimit and RateLimit-Policy, of all limits (IETF draft, structured).",
    )
    ratelimit_dynamic_metadata: bool = Field(
        False,
        description="Answer with dynamic metadata: what was asked, and the metadata of the limits that were passed.",
    )
    ratelimit_would_deny_metadata: bool = Field(
        False, description="Tell in dynamic metadata which limits would have denied but for a shadow mode."
    )
    ratelimit_near_limit_ratio: float = Field(
        0.8, gt=0, le=1, description="Share of a limit from which on requests are counted as near it."
    )


class CounterFields(BaseModel):
    """Where limits are counted."""

    redis: str = Field(
        "",
        description=(
            "URL of the Redis or Valkey that counts: redis://host:6379/0, rediss:// with TLS, unix:///path, "
            "redis+sentinel://host:26379/master, redis+cluster://host:6379,host. Without it, this process counts "
            "for itself, in memory."
        ),
    )
    redis_per_second: str = Field(
        "", description="URL of another Redis for limits per second, which are many and short-lived."
    )
    redis_username: str = Field("", description="User to log in as, where a URL names none.")
    redis_password: str = Field("", repr=False, description="Password to log in with, where a URL has none.")
    redis_password_file: PathSetting | None = Field(
        None, description="File with that password. It is read again for every connection."
    )
    redis_sentinel_username: str = Field("", description="User to log in to Sentinels as.")
    redis_sentinel_password: str = Field("", repr=False, description="Password to log in to Sentinels with.")
    redis_sentinel_password_file: PathSetting | None = Field(None, description="File with that password.")
    redis_ca: PathSetting | None = Field(
        None, description="File of the authorities that the store's certificate is checked by. Default: the system's."
    )
    redis_cert: PathSetting | None = Field(None, description="File of the certificate to show to the store.")
    redis_key: PathSetting | None = Field(None, description="File of that certificate's key.")
    redis_insecure: bool = Field(False, description="Do not check the store's certificate.")
    redis_timeout: Duration = Field(
        timedelta(seconds=1),
        ge=timedelta(milliseconds=1),
        description=(
            "How long the store may take to answer, for calls whose own deadline is later. Then the call is answered "
            "as the limit's on_store_failure says, and the connection is given up."
        ),
    )
    redis_connect_timeout: Duration = Field(
        timedelta(seconds=2), ge=timedelta(milliseconds=1), description="How long a connection may take to be made."
    )
    ratelimit_keys: Literal["own", "compatible"] = Field(
        "own",
        description=(
            "compatible shares counters with an envoyproxy/ratelimit at the same Redis, by its key names, its clock "
            "and its kind of limits only."
        ),
    )
    ratelimit_key_prefix: KeyPrefixSetting = Field(
        "",
        description=(
            "What the names of all counters begin with. Default: `ratelimit`; with compatible keys, nothing. Braces, "
            "which choose the slot of a Redis Cluster, only with compatible keys."
        ),
    )
    ratelimit_hash_tag: Literal["counter", "domain"] = Field(
        "counter",
        description=(
            "What chooses the slot of a Redis Cluster: domain keeps all counters of a domain in one, so that each "
            "call is decided whole."
        ),
    )
    ratelimit_over_limit_memory: bool = Field(
        True, description="Remember for up to a second what is over its limit, instead of asking the store again."
    )
    ratelimit_memory_counters: int = Field(
        1_000_000,
        ge=1_000,
        description="How many counters are kept in memory. Beyond that, those used longest ago begin anew.",
    )
    ratelimit_counters: bool = Field(
        False,
        description=(
            "Serve pages that list and reset counters. Only where the server of pages is at a loopback address: the "
            "admin server, or http of `swashplate ratelimit serve`."
        ),
    )


class HostFields(BaseModel):
    """Where and how calls are taken, by `swashplate ratelimit serve`."""

    ratelimit_listen: ListenSetting = Field(
        "127.0.0.1:8081",
        description=(
            "Address of the gRPC server that Envoys ask: HOST:PORT or unix:PATH. At a socket, native takes callers "
            "in Python or C++ only with the channel option grpc.default_authority."
        ),
    )
    ratelimit_http: AddressSetting = Field(
        Address("127.0.0.1", 8080),
        description="Address of the HTTP server: /healthcheck, /metrics, /json, /rlconfig. It has no login.",
    )
    ratelimit_host: Literal["auto", "grpcio", "native"] = Field(
        "auto",
        description=(
            "What takes the calls: grpcio, or native (grpchost), which is many times faster. auto is native where it "
            "is installed."
        ),
    )
    ratelimit_workers: int = Field(
        1, ge=1, le=256, description="Processes that share the port. More than one needs a Redis to count in."
    )
    ratelimit_max_in_flight: int = Field(
        10_000, ge=1, description="Calls under way at once, for each worker. More are turned away at once."
    )
    ratelimit_max_connection_age: Duration = Field(
        timedelta(hours=24),
        ge=timedelta(0),
        description=(
            "How old an Envoy's connection gets, give or take 10 %, before it is asked to open another. `0`: any age."
        ),
    )
    ratelimit_drain: Duration = Field(
        timedelta(seconds=5), ge=timedelta(0), description="How long calls under way may take at shutdown."
    )
    ratelimit_tls_cert: PathSetting | None = Field(
        None, description="File of the certificate to serve with TLS. It is taken up when it is replaced."
    )
    ratelimit_tls_key: PathSetting | None = Field(None, description="File of that certificate's key.")
    ratelimit_tls_client_ca: PathSetting | None = Field(
        None,
        description="File of the authorities that callers' certificates are checked by; without one, none is asked.",
    )


PATHS: Final = (
    *(
        "ratelimit_config",
        "redis_password_file",
        "redis_sentinel_password_file",
        "redis_ca",
        "redis_cert",
        "redis_key",
    ),
    *("ratelimit_tls_cert", "ratelimit_tls_key", "ratelimit_tls_client_ca"),
)
SECRETS: Final = ("redis_password", "redis_sentinel_password")

OF_LIMITS: Final = (*LimitFields.model_fields, *CounterFields.model_fields)
"""Settings of limits and counters, wherever they are served from."""

OF_HOST: Final = tuple(HostFields.model_fields)
"""Settings of the rate limit service by itself."""
