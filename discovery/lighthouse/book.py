"""All keys of one kind as one value: what each says, and its last good version."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from discovery.lighthouse.parse import Content
from operator_files.last_good import LastGood, Reading
from operator_files.problem import Problem, in_order

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class KeyBook(Generic[V]):
    """Immutable: an edit makes the next one. Paths are the names that problems show; `read` is one of `parse`."""

    read: Callable[[Content, str], Reading[V]]
    _keys: LastGood[V] = field(default_factory=LastGood)

    @classmethod
    def seeded(cls, texts: Mapping[str, str], *, read: Callable[[Content, str], Reading[V]]) -> Self:
        """From the last good texts of an earlier life, all stale until their keys are read."""
        return cls(read, LastGood.seeded({path: read(text, path) for path, text in texts.items()}))

    def edited(self, changes: Mapping[str, Content | None]) -> Self:
        """After these keys changed while they were watched (None: deleted): obeyed, down to nothing too."""
        return replace(self, _keys=self._keys.edited(self._readings(changes)))

    def compared(self, changes: Mapping[str, Content | None]) -> Self:
        """After the keys were found to differ from an earlier life's: missing and empty ones are held."""
        return replace(self, _keys=self._keys.compared(self._readings(changes)))

    def confirm(self, paths: Collection[str]) -> Self:
        """Let go of held keys."""
        return replace(self, _keys=self._keys.confirm(paths))

    def value(self, path: str) -> V | None:
        """What the version in force of a key says."""
        entry = self._keys.entries.get(path)
        return entry.value if entry is not None else None

    def text(self, path: str) -> str:
        """The version in force itself; empty where there is none."""
        entry = self._keys.entries.get(path)
        return (entry.good_text or "") if entry is not None else ""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all keys, by path and position."""
        return in_order(self._keys.problems)

    @property
    def held(self) -> tuple[str, ...]:
        """Paths that wait for `confirm`."""
        return self._keys.held

    @property
    def stale(self) -> tuple[str, ...]:
        """Paths whose value in force is not what the key says now."""
        return self._keys.stale

    @property
    def good_texts(self) -> Mapping[str, str]:
        """What a store must keep: the text in force of every key."""
        return self._keys.good_texts

    def _readings(self, changes: Mapping[str, Content | None]) -> dict[str, Reading[V] | None]:
        return {path: None if content is None else self.read(content, path) for path, content in changes.items()}
