"""Who asks the cluster: read anew each minute, at expiry, and when the server refuses.

Projected tokens are rotated by the kubelet, certificates by whoever rotates them, and plugins say when their answer
ends; so nothing is kept for a life. What cannot be read anew goes on with what was read before.
"""

import asyncio
import base64
import binascii
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from discovery.kubernetes.errors import CredentialsError
from discovery.kubernetes.exec_plugin import PluginAnswer, ask_plugin
from discovery.kubernetes.kubeconfig import Identity, check_kubeconfig, read_account, read_kubeconfig

REREAD_S: Final = 60.0
RETRY_S: Final = 5.0
"""How long what cannot be read is not tried again, whoever asks."""
EARLY_S: Final = 60.0
"""How long before its end a token is renewed; a tenth of its life where that is shorter."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request needs. `server` is a URL without a slash at its end; `tls` is None for plain HTTP.

    The same certificates give the same `tls`, so that connections are used again.
    """

    server: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    proxy: str = ""


class CredentialSource:
    """The credentials of one cluster, for one event loop.

    With a kubeconfig as kubectl has it; without one, the service account of our pod, else kubectl's default file.
    """

    def __init__(
        self,
        kubeconfig: Path | None = None,
        context: str = "",
        *,
        environment: Mapping[str, str] = os.environ,
        account: Callable[[], Identity | None] = read_account,
        now: Callable[[], float] = time.time,
        reread_s: float = REREAD_S,
    ) -> None:
        self.problem = ""
        self._kubeconfig = kubeconfig
        self._context = context
        self._environment = environment
        self._account = account
        self._now = now
        self._reread_s = reread_s
        self._identity: Identity | None = None
        self._credentials: Credentials | None = None
        self._due = self._failed_at = self._read_at = float("-inf")
        self._plugins = _PluginAnswers(now)
        self._one_at_a_time = asyncio.Lock()

    @property
    def place(self) -> str:
        """The cluster, for people: its address and where that is from, once it is known."""
        if self._identity is not None:
            return self._identity.place
        return f"kubeconfig {self._kubeconfig}" if self._kubeconfig is not None else "kubernetes"

    async def current(self) -> Credentials:
        """Those to use now. Raises CredentialsError where there are none."""
        if self._is_due():
            async with self._one_at_a_time:  # others wait for the same answer: a plugin is not asked twice
                if self._is_due():
                    await self._renew()
        if self._credentials is None:
            raise CredentialsError(self.problem)
        return self._credentials

    async def refused(self, used: Credentials) -> Credentials | None:
        """The server does not know who asks: others than those used, where there are any."""
        async with self._one_at_a_time:
            if self._credentials == used:
                self._plugins.forget()
                await self._renew()
        return self._credentials if self._credentials != used else None

    def _is_due(self) -> bool:
        # Tokens end by the clock on the wall, which may be set back.
        return self._credentials is None or not self._read_at <= self._now() < self._due

    async def _renew(self) -> None:
        """Reads everything anew; what fails is told in `problem`."""
        now = self._now()
        if self._failed_at <= now < self._failed_at + RETRY_S:
            return
        self._read_at = now
        try:
            identity = await _in_thread(self._read)
            if self._identity is None or self._credentials is None or _tls(identity) != _tls(self._identity):
                tls = await _in_thread(identity.context)
            else:
                tls = self._credentials.tls
        except CredentialsError as error:
            self.problem, self._failed_at, self._due = str(error), now, now + RETRY_S
            return
        self.problem, self._failed_at = "", float("-inf")
        self._identity = identity
        self._credentials = Credentials(
            identity.server.rstrip("/"), identity.authorization, tls, identity.server_name, identity.proxy
        )
        self._due = min(now + self._reread_s, _renewal(identity, now))

    def check(self) -> None:
        """What was named has to be there: a kubeconfig, a context. Blocking, and asks nobody. Raises
        CredentialsError."""
        if self._kubeconfig is not None or self._context:
            check_kubeconfig(self._paths(), self._context)

    def _read(self) -> Identity:
        """Blocking. Raises CredentialsError."""
        if self._kubeconfig is None and not self._context and (account := self._account()) is not None:
            return account
        return read_kubeconfig(self._paths(), self._context, self._plugins.ask)

    def _paths(self) -> str:
        """As in KUBECONFIG. Raises CredentialsError where there is none of them."""
        if self._kubeconfig is not None:
            if not self._kubeconfig.exists():
                raise CredentialsError(f"kubeconfig {self._kubeconfig}: no such file")
            return str(self._kubeconfig)
        paths = self._environment.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
        if not any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path):
            raise CredentialsError(
                f"no cluster: this is no pod with a service account, and there is no {paths}; name a kubeconfig"
            )
        return paths


class _PluginAnswers:
    """Plugins' answers until they expire: the rest of a kubeconfig is read more often."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._answers: dict[str, tuple[PluginAnswer, float]] = {}

    def ask(self, spec: Mapping[str, Any], cluster: Mapping[str, Any], directory: str) -> PluginAnswer:
        key = json.dumps([spec, cluster, directory], sort_keys=True, default=str)
        now = self._now()
        if key in self._answers and now < self._answers[key][1]:
            return self._answers[key][0]
        answer = ask_plugin(spec, cluster, directory)
        # Of a plugin without an end the answer is good until the server refuses it, says its protocol.
        until = float("inf") if answer.expires_at is None else _early(answer.expires_at, now)
        self._answers = {key: (answer, until)}
        return answer

    def forget(self) -> None:
        self._answers = {}


def _tls(identity: Identity) -> Identity:
    """What makes the TLS context."""
    return replace(identity, authorization="", place="", proxy="", server_name="", expires_at=None)


def _renewal(identity: Identity, now: float) -> float:
    """When to read anew at the latest: before the token ends, where it says when (RFC 7519, 4.1.4)."""
    ends = [at for at in (identity.expires_at, _jwt_end(identity.authorization)) if at is not None]
    return max(min((_early(at, now) for at in ends), default=float("inf")), now + RETRY_S)


def _early(ends_at: float, now: float) -> float:
    return ends_at - min(EARLY_S, max(ends_at - now, 0.0) / 10)


def _jwt_end(authorization: str) -> float | None:
    parts = authorization.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, TypeError, KeyError, binascii.Error):
        return None


async def _in_thread(work: Callable[[], T]) -> T:
    """Not the loop's executor: a plugin that hangs must not hold up the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            result, failure = work(), None
        except BaseException as error:
            result, failure = None, error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            return  # the loop has ended meanwhile

    threading.Thread(target=run, name="kubernetes credentials", daemon=True).start()
    return await done
