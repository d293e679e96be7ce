"""Every setting of the program, once: its name, type, default and meaning.

The command line, the environment variables, the settings file and docs/reference/settings.md are made from
this model. Those of registries are in `registry_settings`.
"""

import socket
from datetime import timedelta
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from operator_files.values import refused
from swashplate import logs
from swashplate import ratelimit_settings as ratelimit
from swashplate.address import Address
from swashplate.proxy_limit_settings import ProxyLimitFields
from swashplate.ratelimit_settings import CounterFields, HostFields, LimitFields
from swashplate.registry_settings import ConsulFields, KubernetesFields, MergingFields
from swashplate.setting_types import (
    AddressSetting,
    DomainSetting,
    Duration,
    IpAddressSetting,
    NamespaceSetting,
    PathSetting,
    written,
)

ENVIRONMENT_PREFIX = "SWASHPLATE_"


class FileFields(BaseModel):
    """Files and directories that operators write."""

    services: PathSetting | None = Field(
        None,
        description="File of services and their endpoints, or a directory of such files. `serve` follows edits.",
    )
    routes: PathSetting | None = Field(
        None, description="Directory of route files (or one such file). `serve` follows edits."
    )
    resources: PathSetting | None = Field(
        None,
        description=(
            "Directory of files with Envoy's own resources (or one such file), served as they are. Without "
            "services and routes, nothing else is served."
        ),
    )
    rotor_static: PathSetting | None = Field(
        None,
        description="Rotor's static resources file: clusters, their template, listeners, load assignments.",
    )
    rotor_static_conflicts: Literal["merge", "overwrite"] = Field(
        "merge",
        description=(
            "merge serves generated resources beside those of Rotor's static resources file, where names and "
            "addresses do not clash; overwrite serves none of the kinds that the file has."
        ),
    )


class ServerFields(ProxyLimitFields):
    """The server, and what it sends."""

    state: PathSetting | None = Field(
        None,
        description=(
            "Directory that keeps the last good services and routes over a restart. Without it, a restart serves "
            "only what the files say at that time."
        ),
    )
    listen: AddressSetting = Field(
        Address("127.0.0.1", 18000), description="Address of the gRPC server that Envoys connect to (ADS)."
    )
    admin: AddressSetting = Field(
        Address("127.0.0.1", 18001),
        description="Address of the admin HTTP server: health, metrics, status. It has no login: keep it private.",
    )
    rest: AddressSetting | None = Field(
        None,
        description=(
            "Address of an HTTP server for Envoys that poll (REST-JSON: POST /v3/discovery:clusters and so on). "
            "Without it there is none. It has no login, as the gRPC server has none."
        ),
    )
    rest_refresh: Duration = Field(
        timedelta(seconds=5),
        ge=timedelta(milliseconds=100),
        description="How often an Envoy that polls asks for each kind of resource.",
    )
    namespace: NamespaceSetting = Field(
        "default", description="Namespace of services and routes that name none themselves."
    )
    cluster_domain: DomainSetting = Field(
        "cluster.local", description="Last part of the names name.namespace.svc.<cluster domain>."
    )
    egress: IpAddressSetting = Field(
        Address("127.0.0.1", 10000),
        description="Address where each Envoy listens for its applications' outgoing requests.",
    )
    ingress: IpAddressSetting | None = Field(
        None,
        description=(
            "Address where an Envoy takes the requests for its node's own service (the one that node.cluster names) "
            "and passes them to 127.0.0.1. Without it, Envoys have no such listener."
        ),
    )
    system_roots: str = Field(
        "/etc/ssl/certs/ca-certificates.crt",
        min_length=1,
        description="File, on the Envoys' machines, of the authorities that TLS to a service trusts by default.",
    )
    identifier: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        description="Name of this server in answers to Envoys and in status. Default: this machine's host name.",
    )
    debounce_quiet: Duration = Field(
        timedelta(milliseconds=100),
        ge=timedelta(0),
        description="A change goes out when nothing more has changed for this long.",
    )
    debounce_limit: Duration = Field(
        timedelta(milliseconds=500),
        ge=timedelta(0),
        description="A change goes out after this long at the latest, however much goes on changing.",
    )
    vhds: bool = Field(
        True,
        description=(
            "Send virtual hosts one by one (VHDS) to Envoys that speak incremental ADS: an edit of one service's "
            "routes then costs some hundred bytes, not the whole table. Others always get the table."
        ),
    )
    rollout_patience: Duration = Field(
        timedelta(seconds=2),
        ge=timedelta(0),
        description=(
            "How long a proxy's new routes wait until it has said that the new clusters are ready. After that, only "
            "the routes that need a missing cluster go on waiting."
        ),
    )
    rollout_drain: Duration = Field(
        timedelta(seconds=10),
        ge=timedelta(0),
        description="How long a cluster that no route refers to any more is kept at a proxy.",
    )
    load_interval: Duration = Field(
        timedelta(seconds=30),
        ge=timedelta(0),
        description=(
            "How often each Envoy reports how many requests it sent to which cluster, and how those ended. "
            "`0`: never."
        ),
    )
    load_metrics: bool = Field(
        False,
        description=(
            "Give the metrics of reported requests by cluster, too: some series more for each cluster that is called."
        ),
    )
    top_errors: int = Field(
        0,
        ge=0,
        le=1000,
        description=(
            "How many of the most frequent failed requests (code, method and URL without the query) to show in "
            "status and in the log. Envoys then send an access log of each request that fails. `0`: they do not."
        ),
    )
    top_errors_interval: Duration = Field(
        timedelta(minutes=5),
        ge=timedelta(seconds=1),
        description="How often the most frequent failed requests are logged, and counted anew.",
    )
    max_connection_age: Duration = Field(
        timedelta(minutes=30),
        ge=timedelta(0),
        description=(
            "How old a proxy's connection gets, give or take 10 %. Then its streams are ended, and it connects "
            "again: so proxies spread over replicas that came later. `0`: any age."
        ),
    )
    write_timeout: Duration = Field(
        timedelta(seconds=30),
        ge=timedelta(0),
        description="How long a proxy may leave an answer untaken before its stream is given up. `0`: for ever.",
    )
    admission_rate: int = Field(
        300,
        ge=0,
        description=(
            "How many streams may begin a second. More wait up to a second, and are then told to come "
            "again. `0`: all."
        ),
    )
    shutdown_drain: Duration = Field(
        timedelta(seconds=5),
        ge=timedelta(0),
        description=(
            "Over how long streams are ended at shutdown, in batches, so that their proxies do not all reach another "
            "replica at once. A few end at once."
        ),
    )
    shutdown_grace: Duration = Field(
        timedelta(seconds=5),
        ge=timedelta(0),
        description="How long streams may take at shutdown, after shutdown_drain, before they are cut off.",
    )
    node_metrics: bool = Field(
        False, description="Give metrics by node, too: some series more for each proxy that is connected."
    )
    log_level: logs.Level = Field("info", description="The least severe log lines that are written.")
    log_format: logs.Format = Field(
        "auto", description="auto writes for people on a terminal, JSON lines anywhere else."
    )

    @field_validator("debounce_limit")
    @classmethod
    def _limit_is_no_less(cls, limit: timedelta, info: ValidationInfo) -> timedelta:
        quiet = info.data.get("debounce_quiet")
        if quiet is not None and limit < quiet:
            raise refused(f"this must be at least debounce_quiet, which is {written(quiet)}")
        return limit


class Settings(
    HostFields, CounterFields, LimitFields, ServerFields, MergingFields, ConsulFields, KubernetesFields, FileFields
):
    """What the program runs by. Durations are written like `250ms`, `5s`, `1m30s`; `0` means at once."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


PATHS: Final = (
    *("services", "routes", "resources", "rotor_static", "state"),
    *("kubeconfig", "consul_token_file", "consul_ca", "consul_cert", "consul_key"),
    *ratelimit.PATHS,
)
"""Settings that are paths. In a settings file they are relative to that file's directory."""

ENVIRONMENT_ONLY: Final = ("consul_token", *ratelimit.SECRETS)
"""Secrets: a command line is seen by everybody on the machine, and settings files are passed on."""

SOURCES: Final = ("services", "routes", "resources", "rotor_static", "kubernetes", "consul")
"""Settings that each name something to serve from."""

OF_REGISTRIES: Final = (*KubernetesFields.model_fields, *ConsulFields.model_fields, *MergingFields.model_fields)
"""Settings of discovery from registries."""

KUBERNETES_RIGHTS: Final = (
    *("kubernetes_namespaces", "kubernetes_namespace_selector", "kubernetes_pods", "kubernetes_pod_labels", "nelson"),
)
"""Settings that decide which rights are needed in Kubernetes."""


def has_source(settings: Settings) -> bool:
    """Whether there is anything to serve from."""
    return any(getattr(settings, name) for name in SOURCES)


def asks_registries(settings: Settings) -> bool:
    """Whether some services are only known to a server that runs."""
    return settings.kubernetes or settings.consul is not None


def is_generated(settings: Settings) -> bool:
    """Whether services or routes come from anywhere, so that configuration is generated of them."""
    return any((settings.services, settings.routes, settings.kubernetes, settings.consul))


def flag(name: str, omitted: str = "") -> str:
    """`log_level` -> `--log-level`. Where flags omit a beginning of names, `ratelimit_config` is `--config`."""
    return "--" + name.removeprefix(omitted).replace("_", "-")


def environment_variable(name: str) -> str:
    """`log_level` -> `SWASHPLATE_LOG_LEVEL`."""
    return ENVIRONMENT_PREFIX + name.upper()


def default_text(name: str) -> str | None:
    """The default as an operator would write it; None where there is none, or where it depends on the machine."""
    return written(Settings.model_fields[name].default) if not Settings.model_fields[name].default_factory else None
