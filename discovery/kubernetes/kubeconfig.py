"""Reads a kubeconfig, or a pod's service account, through the kubernetes package. Blocking: for a thread."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.client import Configuration
from kubernetes.config import incluster_config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import FileOrData, KubeConfigLoader, KubeConfigMerger

from discovery.kubernetes.errors import CredentialsError
from discovery.kubernetes.exec_plugin import PluginAnswer

AskPlugin = Callable[[Mapping[str, Any], Mapping[str, Any], str], PluginAnswer]
ACCOUNT: Final = Path(incluster_config.SERVICE_TOKEN_FILENAME).parent


@dataclass(frozen=True, slots=True)
class Identity:
    """Where the cluster is and who asks, as read. `authorization` is the header's value, or empty.

    `authority`, `certificate` and `key` are PEM. `expires_at`: what the plugin said, in Unix seconds.
    """

    server: str
    place: str
    authorization: str = field(default="", repr=False)
    authority: bytes = field(default=b"", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    verify: bool = True
    server_name: str = ""
    proxy: str = ""
    expires_at: float | None = None

    def context(self) -> ssl.SSLContext | None:
        """None for a server without TLS. Raises CredentialsError."""
        if not self.server.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.authority.decode() or None)
            # Clusters' own authorities often lack what RFC 5280 wants; kubectl does not ask for it either.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if not self.verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.certificate:
                self._show_certificate(context)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"{self.place}: its certificates cannot be used: {error}") from error
        return context

    def _show_certificate(self, context: ssl.SSLContext) -> None:
        # ssl takes a certificate from files only.
        with tempfile.TemporaryDirectory(prefix="swashplate-") as folder:
            certificate, key = Path(folder, "certificate"), Path(folder, "key")
            certificate.write_bytes(self.certificate)
            key.write_bytes(self.key)
            # Without a password an encrypted key would ask for one on the terminal.
            context.load_cert_chain(certificate, key, password="")


def read_account(folder: Path = ACCOUNT, environment: Mapping[str, str] = os.environ) -> Identity | None:
    """The service account of the pod we run in; None outside of a pod. Raises CredentialsError."""
    if not environment.get(incluster_config.SERVICE_HOST_ENV_NAME) or not folder.is_dir():
        return None
    token, authority = folder / "token", folder / "ca.crt"
    loaded = Configuration()
    try:
        InClusterConfigLoader(str(token), str(authority), environ=environment).load_and_set(loaded)
        return Identity(
            server=loaded.host,
            place=f"{loaded.host} (service account)",
            authorization=_bearer(loaded.api_key["BearerToken"]),
            authority=authority.read_bytes(),
            proxy=loaded.proxy or "",
        )
    except ConfigException as error:
        raise CredentialsError(f"service account in {folder}: {error}") from error
    except OSError as error:
        raise CredentialsError(f"service account: {error.filename}: {error.strerror}") from error


def read_kubeconfig(paths: str, context: str, ask_plugin: AskPlugin) -> Identity:
    """What kubectl would use. `paths` is one file or several as in KUBECONFIG. Raises CredentialsError."""
    with _told_of(paths):
        merger, name = _merged(paths, context)
        with tempfile.TemporaryDirectory(prefix="swashplate-") as folder:
            loader = _Loader(ask_plugin, folder, merger, name)
            loaded = Configuration()
            loader.load_and_set(loaded)
            return _identity(loader, loaded, f"{loaded.host} (context {name})")


def check_kubeconfig(paths: str, context: str) -> None:
    """Whether there is such a file with such a context; no plugin is asked. Raises CredentialsError."""
    with _told_of(paths):
        _merged(paths, context)


def _merged(paths: str, context: str) -> tuple[KubeConfigMerger, str]:
    """The files, and the context to use."""
    merger = KubeConfigMerger(paths)
    if merger.config is None:
        raise CredentialsError(f"kubeconfig {paths}: no such file")
    name = context or merger.config.value.get("current-context") or ""
    _check_context(paths, name, merger.config.value.get("contexts"))
    return merger, name


@contextlib.contextmanager
def _told_of(paths: str) -> Iterator[None]:
    """Whatever goes wrong, as a CredentialsError."""
    try:
        yield
    except CredentialsError:
        raise
    except OSError as error:
        raise CredentialsError(f"kubeconfig {error.filename or paths}: {error.strerror or error}") from error
    except yaml.YAMLError as error:
        raise CredentialsError(f"kubeconfig {paths}: not YAML: {error}") from error
    except Exception as error:  # the package and its OIDC libraries let all kinds through
        raise CredentialsError(f"kubeconfig {paths}: {error}") from error


def _identity(loader: "_Loader", loaded: Configuration, place: str) -> Identity:
    return Identity(
        server=loaded.host,
        place=place,
        authorization=_bearer(loaded.api_key.get("BearerToken", "")),
        authority=_content(loaded.ssl_ca_cert),
        certificate=_content(loaded.cert_file),
        key=_content(loaded.key_file),
        verify=loaded.verify_ssl,
        server_name=loaded.tls_server_name or "",
        proxy=loaded.proxy or "",
        expires_at=loader.expires_at,
    )


def _check_context(paths: str, name: str, contexts: Any) -> None:
    names = sorted(str(node.value["name"]) for node in contexts or ())
    if name not in names:
        said = f"no context {name!r}" if name else "it has no current-context"
        raise CredentialsError(f"kubeconfig {paths}: {said}; there are: {', '.join(names) or 'none'}")


class _Loader(KubeConfigLoader):  # type: ignore[misc]
    """The package's loader with our way of asking plugins."""

    def __init__(self, ask_plugin: AskPlugin, folder: str, merger: KubeConfigMerger, context: str) -> None:
        self._ask_plugin = ask_plugin
        self._folder = folder
        self.expires_at: float | None = None
        super().__init__(
            merger.config,
            active_context=context,
            config_base_path=None,  # each file's own folder
            config_persister=lambda: _persist(merger),
            temp_file_path=folder,
        )

    def _load_from_exec_plugin(self) -> bool | None:
        if "exec" not in self._user:
            return None
        directory = self._get_base_path(self._user.path)
        answer = self._ask_plugin(self._user["exec"].value, self._cluster.value, directory)
        self.expires_at = answer.expires_at
        if answer.token:
            self.token = f"Bearer {answer.token}"
        if answer.certificate:
            data = {"certificate": answer.certificate, "key": answer.key}
            self.cert_file, self.key_file = (
                FileOrData(data, "", name, base64_file_content=False, temp_file_path=self._folder).as_file()
                for name in data
            )
        return True


def _persist(merger: KubeConfigMerger) -> None:
    """Writes a refreshed OIDC token back, as kubectl does: the refresh token may be good for one use only."""
    try:
        merger.save_changes()
    except OSError:
        return  # a read-only kubeconfig: the token is good for this life


def _content(path: str | None) -> bytes:
    return Path(path).read_bytes() if path else b""


def _bearer(said: str) -> str:
    """The header's value; the package leaves a file's newline in it."""
    kind, _, token = said.partition(" ")
    return f"{'Bearer' if kind.lower() == 'bearer' else kind} {token.strip()}" if said else ""
