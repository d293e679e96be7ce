"""All callers: each of its own hosts, over clusters and assignments that everybody shares.

A caller is translated again when it, or what a reference of it means, has changed. So a change of one caller costs
that caller, and an endpoint that comes or goes costs none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from mesh.caller import Caller
from mesh.split import ServiceRef
from xds.resources.node import Node
from xds.translate.callers.parts import Target, caller_references, translate_caller
from xds.translate.callers.view import CallerView
from xds.translate.finding import Finding
from xds.translate.settings import TranslationSettings

Resolve = Callable[[ServiceRef], Target]


class CallerLayers:
    """The callers by the `node.cluster` of their nodes, kept current by `apply`."""

    def __init__(self, settings: TranslationSettings, resolve: Resolve) -> None:
        self._settings = settings
        self._resolve = resolve
        self._views: dict[str, CallerView] = {}

    def apply(self, changed: Mapping[str, Caller | None], reached: Iterable[str]) -> None:
        """Callers as they are now, None for those that have gone; and those with a target that may be another now."""
        for cluster, caller in changed.items():
            if caller is None:
                self._views.pop(cluster, None)
            else:
                self._put(cluster, caller)
        for cluster in reached:
            if cluster not in changed and (view := self._views.get(cluster)) is not None:
                self._put(cluster, view.parts.caller)

    def _put(self, cluster: str, caller: Caller) -> None:
        targets = {reference: self._resolve(reference) for reference in sorted(caller_references(caller), key=repr)}
        view = self._views.get(cluster)
        if view is None:
            self._views[cluster] = CallerView(translate_caller(caller, targets, self._settings))
        elif (view.parts.caller, view.parts.targets) != (caller, targets):
            view.edit(translate_caller(caller, targets, self._settings))

    def __getitem__(self, cluster: str) -> CallerView:
        return self._views[cluster]

    def of(self, node: Node) -> str | None:
        """Which caller the node is, by its metadata's `service` or else by its cluster; None for any other node."""
        named = node.metadata.get("service")
        names = (named, node.cluster) if isinstance(named, str) else (node.cluster,)
        return next((name for name in names if name in self._views), None)

    def has_viewer(self, cluster: str, viewer: str) -> bool:
        """Whether nodes of the caller may still look from that namespace."""
        view = self._views.get(cluster)
        return view is not None and view.parts.viewer(viewer) == viewer

    def findings(self) -> Iterator[Finding]:
        for view in self._views.values():
            yield from view.parts.findings
