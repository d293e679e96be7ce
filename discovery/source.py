"""What all sources of services have in common, so that whoever runs them need not know which is which."""

from collections.abc import Collection, Mapping
from typing import Protocol

from mesh.service import ServiceName
from operator_files.follow import Freshness
from operator_files.problem import Problem
from operator_files.standing import Standing


class Source(Protocol):
    """Feeds the registry; `run` it as a task. From the start on the registry has what the store kept of it."""

    @property
    def name(self) -> str:
        """As status, logs, `confirm` and the route key `sources` call it: that of its feed."""

    @property
    def place(self) -> str:
        """Where it looks: a path, a URL."""

    @property
    def freshness(self) -> Freshness:
        """When it was last heard, and what is in the way."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of what it reads, as far as that has lines and columns."""

    @property
    def held_files(self) -> tuple[str, ...]:
        """Files that are missing or empty since the start; `confirm` lets go of what they said."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for status: what is not an error, and an operator should know all the same."""

    def standings(self, paths: Collection[str]) -> Mapping[str, Standing]:
        """What is in force of these files, which have errors."""

    async def run(self) -> None:
        """Follows the source until cancelled."""

    async def keep(self) -> None:
        """Write to the store what is in force now: for the end of a life."""

    async def confirm(self, names: Collection[ServiceName] | None = None) -> frozenset[ServiceName]:
        """Let held removals of these services come true (None: all). The names that were held."""
