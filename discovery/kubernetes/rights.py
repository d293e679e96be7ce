"""What to do about a right that is missing, as the command that gives it."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

from discovery.kubernetes.errors import ApiError
from discovery.kubernetes.settings import KubernetesSettings

_USER: Final = re.compile(r'\bUser "([^"\s]{1,300})" cannot ')
_ACCOUNT: Final = re.compile(r"system:serviceaccount:([a-z0-9.-]+):([a-z0-9.-]+)")


def rights_for(error: ApiError, settings: KubernetesSettings, *, everywhere: bool, labels: bool) -> str:
    """Words after a refusal. `everywhere`: all namespaces were asked for; `labels`: only the labels of pods were."""
    user = found[1] if (found := _USER.search(error.message)) else ""
    account = _ACCOUNT.fullmatch(user)
    command = shlex.join(("swashplate", "rbac", *_flags(settings)))
    if account is not None:
        command += f" --service-account {account[1]}/{account[2]}"
        said = f"`{command} | kubectl apply -f -` gives the rights"
    else:
        said = f"`{command}` prints the rights; bind them to {f'`{user}`' if user else 'who asks'}"
    if everywhere and not settings.namespace_selector:
        said += "; where it may read some namespaces only, name them: `--kubernetes-namespaces`"
    return f"{said}; or serve without pods' labels: `--kubernetes-pod-labels false`" if labels else said


def _flags(settings: KubernetesSettings) -> Iterator[str]:
    """Those of `serve` that rights depend on."""
    if settings.namespaces:
        yield from ("--kubernetes-namespaces", ",".join(settings.namespaces))
    if settings.namespace_selector:
        yield from ("--kubernetes-namespace-selector", settings.namespace_selector)
    if settings.pods:
        yield "--kubernetes-pods"
    elif not settings.pod_labels:
        yield from ("--kubernetes-pod-labels", "false")
