"""Labels of endpoints: those of their pods, all of them.

None is special: a label that no subset names never reaches Envoy, so one that says little (`pod-template-hash`)
costs nothing there, and pods of one template share one set here.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from discovery.kubernetes.objects import TargetRef
from mesh.service import Labels

_MOST_SHARED: Final = 20_000


class LabelsOf(Protocol):
    """The labels of what an endpoint of a slice in `namespace` is, as far as they are known."""

    def __call__(self, namespace: str, target: TargetRef) -> Labels: ...


class SharedLabels:
    """Equal label sets as one value: thousands of pods have a dozen templates."""

    def __init__(self) -> None:
        self._sets: dict[Labels, Labels] = {}

    def of(self, labels: Mapping[str, str] | None) -> Labels:
        """These labels as a set."""
        if len(self._sets) > _MOST_SHARED:
            self._sets.clear()  # label sets of pods long gone
        made = frozenset((labels or {}).items())
        return self._sets.setdefault(made, made)
