"""Credential plugins: a program that a kubeconfig names, which prints a token or a client certificate.

Not the kubernetes package's ExecProvider: that one waits for the plugin for ever, gives it the server's terminal, and
its loader swallows what the plugin complains about.
"""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from discovery.kubernetes.errors import CredentialsError

PLUGIN_S: Final = 60.0
_STDERR_LIMIT: Final = 500


@dataclass(frozen=True, slots=True)
class PluginAnswer:
    """A token, or a certificate and its key as PEM; `expires_at` in Unix seconds."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    expires_at: float | None = None


def ask_plugin(
    spec: Mapping[str, Any], cluster: Mapping[str, Any], directory: str, *, within_s: float = PLUGIN_S
) -> PluginAnswer:
    """Runs the plugin of a kubeconfig's `exec` and reads its answer. Raises CredentialsError.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
    """
    command, version = spec.get("command"), spec.get("apiVersion")
    if not command or not version:
        raise CredentialsError("exec: `command` and `apiVersion` are needed")
    about: dict[str, Any] = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    if spec.get("provideClusterInfo"):
        about["spec"]["cluster"] = _cluster_info(cluster)
    extra = {item["name"]: item["value"] for item in spec.get("env") or ()}
    environment = {**os.environ, **extra, "KUBERNETES_EXEC_INFO": json.dumps(about)}
    # A command with a slash is relative to the kubeconfig, one without is searched in PATH.
    program = os.path.join(directory, command) if os.sep in command else command
    text = _run([program, *(spec.get("args") or ())], environment, within_s)
    try:
        answer = json.loads(text)
        return _read(answer, version)
    except (ValueError, TypeError, AttributeError) as error:
        raise CredentialsError(f"exec plugin {command}: its answer is no ExecCredential: {error}") from error
    except CredentialsError as error:
        raise CredentialsError(f"exec plugin {command}: {error}") from None


def _run(arguments: list[str], environment: Mapping[str, str], within_s: float) -> bytes:
    program = arguments[0]
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # so that its children end with it
        )
    except OSError as error:
        raise CredentialsError(f"exec plugin {program}: {error.strerror}; is it installed, and in PATH?") from error
    with process:
        try:
            text, complaint = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise CredentialsError(f"exec plugin {program}: no answer in {within_s:g} s") from None
    if process.returncode != 0:
        said = complaint.decode(errors="replace").strip()[-_STDERR_LIMIT:]
        raise CredentialsError(
            f"exec plugin {program}: exit status {process.returncode}: {said or 'it says nothing'}"
        )
    return text


def _read(answer: Mapping[str, Any], version: str) -> PluginAnswer:
    if answer.get("apiVersion") != version:
        raise CredentialsError(f"it answers in {answer.get('apiVersion')}, the kubeconfig says {version}")
    status = answer.get("status") or {}
    expires = status.get("expirationTimestamp")
    found = PluginAnswer(
        token=status.get("token") or "",
        certificate=status.get("clientCertificateData") or "",
        key=status.get("clientKeyData") or "",
        expires_at=datetime.fromisoformat(expires).timestamp() if expires else None,
    )
    if not found.token and not (found.certificate and found.key):
        raise CredentialsError("it gives neither `token` nor `clientCertificateData` with `clientKeyData`")
    return found


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    info = {key: cluster[key] for key in ("server", "tls-server-name", "insecure-skip-tls-verify") if key in cluster}
    if "certificate-authority-data" in cluster:
        info["certificate-authority-data"] = cluster["certificate-authority-data"]
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info
