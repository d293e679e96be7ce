"""Sources of services in registries, made when the settings ask for them: with files alone, no registry's library is
loaded."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from discovery.registry import Feed
from discovery.source import Source
from operator_files.store import LastGoodStore
from routes.source import Changes as RouteChanges
from swashplate.output import UnusableError
from swashplate.registry_settings import consul_settings, kubernetes_settings
from swashplate.settings import Settings


@dataclass(frozen=True, slots=True)
class Told:
    """What a source calls, on the event loop: with the reason why it cannot be heard; with routes that it derives;
    and when its notes changed."""

    error: Callable[[str], None]
    routes: Callable[[RouteChanges], None]
    notes: Callable[[], None]


def kubernetes_source(settings: Settings, feed: Feed, store: LastGoodStore | None, told: Told) -> Source:
    """Raises StoreError, and UnusableError for a kubeconfig that cannot be used."""
    from discovery.kubernetes.errors import CredentialsError
    from discovery.kubernetes.source import KubernetesSource

    try:
        return KubernetesSource(
            kubernetes_settings(settings),
            feed,
            store=store,
            now=time.time,
            on_error=told.error,
            on_routes=told.routes,
            on_notes=told.notes,
        )
    except CredentialsError as error:
        raise UnusableError(str(error)) from error


def check_kubeconfig(settings: Settings) -> None:
    """Whether there is such a file with such a context, where settings name one. Raises UnusableError."""
    from discovery.kubernetes.credentials import CredentialSource
    from discovery.kubernetes.errors import CredentialsError

    try:
        CredentialSource(settings.kubeconfig, settings.kubernetes_context).check()
    except CredentialsError as error:
        raise UnusableError(str(error)) from error


def consul_source(settings: Settings, feed: Feed, store: LastGoodStore | None, told: Told) -> Source:
    """Raises StoreError, and ValueError for settings that do not go together."""
    from discovery.consul.source import ConsulSource

    return ConsulSource(
        consul_settings(settings),
        feed,
        store=store,
        now=time.time,
        on_error=told.error,
        on_notes=told.notes,
        default_namespace=settings.namespace,
    )
