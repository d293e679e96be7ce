"""What is followed in Consul's key/value store: route files, and what Nelson writes for Lighthouse."""

import time
from collections.abc import Callable
from functools import partial

from structlog.typing import FilteringBoundLogger

from discovery.lighthouse.source import Changes, LighthouseSource
from operator_files.folder import Folder
from operator_files.store import LastGoodStore
from swashplate.problem_log import ProblemLog
from swashplate.registry_settings import consul_settings
from swashplate.settings import Settings
from swashplate.status import LIGHTHOUSE


def route_keys(settings: Settings) -> Folder | None:
    """The route files in Consul, where the settings ask for them."""
    if settings.consul_routes is None:
        return None
    from discovery.consul.kv import KvFolder

    return KvFolder(consul_settings(settings), settings.consul_routes)


def lighthouse(
    settings: Settings,
    store: LastGoodStore | None,
    log: FilteringBoundLogger,
    *,
    on_change: Callable[[Changes], None],
    unreadable: Callable[[str, str], None],
) -> LighthouseSource | None:
    """The source of callers, where the settings ask for it. Raises StoreError."""
    if not settings.lighthouse:
        return None
    from discovery.consul.kv import KvFolder, is_one_level

    def folder(prefix: str) -> Folder:
        return KvFolder(consul_settings(settings), prefix, wanted=is_one_level)

    source = LighthouseSource(
        folder(settings.lighthouse_discovery),
        folder(settings.lighthouse_load_balancers_v1),
        folder(settings.lighthouse_load_balancers_v2),
        namespace=settings.namespace,
        store=store,
        now=time.time,
        on_change=on_change,
        on_problems=ProblemLog(log, LIGHTHOUSE, lambda paths: source.standings(paths)),
        on_error=partial(unreadable, LIGHTHOUSE),
    )
    return source
