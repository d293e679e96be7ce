"""Settings that do not go together: told with what to do, before anything starts."""

import re
from collections.abc import Iterator
from typing import Final

import click

from swashplate.ratelimit_contradictions import limit_contradictions
from swashplate.registry_settings import ConsulFields, KubernetesFields, consul_settings
from swashplate.registry_sources import check_kubeconfig
from swashplate.settings import PATHS, Settings, flag
from swashplate.status import CONSUL, KUBERNETES, SERVICE_FILES

_NEEDS: Final = {
    "kubernetes": ("kubeconfig", "kubernetes_", "nelson"),
    "consul": ("consul_", "lighthouse"),
    "lighthouse": ("lighthouse_",),
    "kubernetes_pods": ("kubernetes_pod_label", "kubernetes_pod_port"),
}
"""What settings that begin so are about, by the setting without which they say nothing."""
_NAMESPACE: Final = re.compile(r"(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?")
"""A DNS label, RFC 1123."""
_EXACT: Final = ("kubernetes_pod_label", "kubernetes_pod_port", "kubeconfig", "nelson")


def refuse_contradictions(settings: Settings) -> None:
    """Raises click.UsageError with everything that does not go together."""
    if lines := list(contradictions(settings)):
        raise click.UsageError("\n".join(lines))


def refuse_unreadable(settings: Settings) -> None:
    """Raises OSError for a file that a registry's setting names and that cannot be read, and UnusableError for a
    kubeconfig without the context."""
    for name in (*KubernetesFields.model_fields, *ConsulFields.model_fields):
        if name in PATHS and (path := getattr(settings, name)) is not None:
            with path.open("rb"):
                pass
    if settings.kubernetes:
        check_kubeconfig(settings)


def contradictions(settings: Settings) -> Iterator[str]:
    """A sentence for each."""
    given = [name for name in Settings.model_fields if name in settings.model_fields_set and getattr(settings, name)]
    for name in given:
        if (lacking := _lacking(name, settings)) is not None:
            yield f"{flag(name)} says nothing without {flag(lacking)}: give that too, or leave it out"
    for namespace in settings.kubernetes_namespaces:
        if _NAMESPACE.fullmatch(namespace) is None:
            near = namespace.lower()
            fix = f"did you mean {near}?" if _NAMESPACE.fullmatch(near) else "they have a-z, 0-9 and - only"
            yield f"--kubernetes-namespaces: {namespace} cannot be a namespace's name in Kubernetes: {fix}"
    if settings.kubernetes_namespaces and settings.kubernetes_namespace_selector:
        yield "--kubernetes-namespaces and --kubernetes-namespace-selector both choose namespaces: leave one out"
    if settings.consul is not None:
        try:
            consul_settings(settings)
        except ValueError as failure:
            yield f"--consul: {failure}"
        if settings.consul_token and settings.consul_token_file:
            yield "SWASHPLATE_CONSUL_TOKEN and --consul-token-file are both given: leave one out"
    for name in ("consul_routes", *(name for name in given if name.startswith("lighthouse_"))):
        if (prefix := getattr(settings, name)) is not None and not prefix.strip("/"):
            yield f"{flag(name)} would be all keys in Consul: write a prefix, such as swashplate/routes"
    yield from _unknown_sources(settings)
    yield from limit_contradictions(settings)


def _lacking(name: str, settings: Settings) -> str | None:
    """The setting without which this one says nothing, if it is not given."""
    for needed, beginnings in _NEEDS.items():
        about = any(name == start if start in _EXACT else name.startswith(start) for start in beginnings)
        if about and name not in (needed, "consul_token") and not getattr(settings, needed):
            return needed
    return None


def _unknown_sources(settings: Settings) -> Iterator[str]:
    there = {SERVICE_FILES: settings.services, KUBERNETES: settings.kubernetes, CONSUL: settings.consul}
    for name in settings.source_weights:
        if not there.get(name):
            have = ", ".join(source for source, given in there.items() if given) or "none"
            yield f"--source-weights: there is no source `{name}` of services; those that are given: {have}"
    if settings.source_weights and not any(settings.source_weights.values()):
        yield "--source-weights: all shares are 0; give one source more"
