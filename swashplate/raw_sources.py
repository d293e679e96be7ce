"""The sources of Envoy's own resources: a directory of resource files, and Rotor's static resources file."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from operator_files.problem import Problem
from operator_files.standing import Standing
from operator_files.store import LastGoodStore
from swashplate.bootstrap import LOCAL_CLUSTER, XDS_CLUSTER
from swashplate.composition import Composition
from swashplate.problem_log import ProblemLog
from swashplate.rendering import NEWEST_ENVOY
from swashplate.settings import Settings
from swashplate.source_report import raw_source_report
from swashplate.status import SourceReport
from xds.raw import rotor
from xds.raw.findings import findings
from xds.raw.parse import FORM, Form
from xds.raw.source import KIND, RawSource
from xds.resources.node import Node

RESOURCE_FILES: Final = "resource-files"
ROTOR_STATIC: Final = "rotor-static"

BOOTSTRAP_CLUSTERS: Final = frozenset({XDS_CLUSTER, LOCAL_CLUSTER})


class Place(NamedTuple):
    """Where files of a form are, and what the store knows them by."""

    root: Path
    form: Form
    kind: str


def places(settings: Settings) -> Mapping[str, Place]:
    """The paths that the settings name, by their sources' names."""
    found = {}
    if settings.resources is not None:
        found[RESOURCE_FILES] = Place(settings.resources, FORM, KIND)
    if settings.rotor_static is not None:
        form = rotor.form(overwrite=settings.rotor_static_conflicts == "overwrite")
        found[ROTOR_STATIC] = Place(settings.rotor_static, form, ROTOR_STATIC)
    return found


class RawSources:
    """Those that the settings ask for, `by_name`."""

    def __init__(
        self,
        settings: Settings,
        composition: Composition,
        store: LastGoodStore | None,
        log: FilteringBoundLogger,
        unreadable: Callable[[str, str], None],
    ) -> None:
        """`unreadable` is told a source's name and the reason. Raises StoreError."""
        self._composition = composition
        self._places = places(settings)
        self._found: tuple[object, object, tuple[Problem, ...]] = (None, None, ())
        self.by_name = {
            name: RawSource(
                place.root,
                store=store,
                now=time.time,
                on_change=partial(composition.resources_changed, name),
                on_problems=ProblemLog(log, name, partial(self._standings, name)),
                on_error=partial(unreadable, name),
                form=place.form,
                kind=place.kind,
            )
            for name, place in self._places.items()
        }

    def reports(self, server: str) -> Iterator[SourceReport]:
        for name, source in self.by_name.items():
            yield raw_source_report(server, name, str(self._places[name].root), source)

    async def confirm(self, source: str) -> tuple[str, ...]:
        """Let go of held files; their paths."""
        return tuple(sorted(await self.by_name[source].confirm()))

    def _standings(self, name: str, paths: Collection[str]) -> Mapping[str, Standing]:
        return self.by_name[name].standings(paths)

    def findings(self) -> tuple[Problem, ...]:
        """What resources in force lack, and what they take from generated ones."""
        files = tuple(file for source in self.by_name.values() for file in source.book.files)
        if not files:
            return ()
        generated = self._composition.generated_view(STRANGER)
        if self._found[0] != files or self._found[1] is not generated:
            self._found = (files, generated, findings(files, generated, BOOTSTRAP_CLUSTERS))
        return self._found[2]


STRANGER: Final = Node("", version=NEWEST_ENVOY)
"""A node that is none of the mesh's services: it sees what is nobody's in particular."""
