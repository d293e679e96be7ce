"""What nodes see: the mesh, translated, and operators' own resources over it."""

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from mesh.caller import Caller
from mesh.mesh import Mesh
from swashplate.limit_resources import takes_limits
from xds.raw.overlay import Overlay
from xds.raw.resource_file import RawFile
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.resources.snapshot import NOTHING, Snapshot
from xds.translate.composer import Composer
from xds.translate.finding import Finding
from xds.translate.settings import TranslationSettings


class Views:
    """A mesh and the resource files at one moment, kept current by `update`. Not for several threads at once.

    `generated`: whether the mesh is anybody's. Where no services and no routes are configured, nodes get the files'
    resources and nothing else, no egress listener either.
    """

    def __init__(self, settings: TranslationSettings, *, generated: bool) -> None:
        self._generated = generated
        self._composer = Composer(settings)
        self._overlay = Overlay()
        self._limits = EMPTY
        self._with_limits: WeakKeyDictionary[Snapshot, Snapshot] = WeakKeyDictionary()
        self.mesh = Mesh()

    @property
    def files(self) -> tuple[RawFile, ...]:
        return self._overlay.files

    def update(self, mesh: Mesh, files: tuple[RawFile, ...]) -> bool:
        """Returns whether anything changed: services, routes or resource files. An exception changes nothing."""
        overlay = self._overlay.after(files) if files != self._overlay.files else self._overlay
        changed = self._composer.update(mesh, _template(files))
        changed = changed or overlay is not self._overlay
        self.mesh, self._overlay = mesh, overlay
        return changed

    def limits_are(self, limits: ResourceSet) -> None:
        """From now on nodes that may take limits see these."""
        self._limits = limits
        self._with_limits = WeakKeyDictionary()

    def view(self, node: Node) -> Snapshot:
        """What the node may see: the identical snapshot for every node with the same view, until that changes."""
        view = self._overlay.view(node, self.generated_view(node))
        if not self._limits or not takes_limits(node):
            return view
        if (known := self._with_limits.get(view)) is None:
            known = Snapshot({**view.layers, types.RATE_LIMIT_CONFIG: (self._limits,)})
            self._with_limits[view] = known
        return known

    def generated_view(self, node: Node) -> Snapshot:
        """The same without operators' own resources."""
        return self._composer.view(node) if self._generated else NOTHING

    def caller_of(self, node: Node) -> Caller | None:
        """The caller whose view the node has; None where it has a view of services."""
        return self._composer.caller_of(node) if self._generated else None

    def kinds(self, node: Node) -> Iterator[tuple[str, Snapshot]]:
        """One view for each choice of nodes that some file makes: whom it is for, and what such a node may see.

        A node is taken for one whom the files that are for everybody, and those of that choice, are for.
        """
        generated = self.generated_view(node)
        everybody = tuple(file for file in self.files if file.nodes.is_everybody)
        yield "", self._overlay.over(everybody, generated)
        for chosen in sorted({repr(file.nodes): file.nodes for file in self.files}.items()):
            if not chosen[1].is_everybody:
                mine = tuple(file for file in self.files if repr(file.nodes) == chosen[0])
                yield str(chosen[1]), self._overlay.over((*everybody, *mine), generated)

    def clusters_elsewhere(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Clusters that operators' own resources name and that are not in a snapshot: of Envoys' bootstraps, say."""
        raw = (resource for file in self.files for resource in file.resources.values())
        named = (one.resource.references for one in raw if one.resource.type_url != types.CLUSTER)
        there = {cluster.name for cluster in snapshot.all(types.CLUSTER)}
        return tuple(sorted(frozenset[str]().union(*named) - there))

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What could not be granted as it was written."""
        return self._composer.warnings


def _template(files: Iterable[RawFile]) -> str:
    """The cluster template, where a file has one."""
    return next((file.cluster_template for file in files if file.cluster_template), "")
