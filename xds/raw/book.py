"""A directory of resource files as one value: what is in force, and what is wrong.

Last good goes by the single resource. In an edit of a file

* a good resource is taken, whatever is wrong with others;
* one with an error keeps its last good version, and is left out where there was none;
* one that is not there any more is gone, unless some resource in the file cannot even be told by type and name: it
  may be that one, so nothing of the file goes away until that is mended.

A file that is no YAML, or that does not say for which nodes it is, stays wholly as it was.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Self

from operator_files.last_good import LastGood, Reading
from operator_files.problem import Problem, in_order
from xds.raw.conflicts import conflict_problems
from xds.raw.parse import FORM, NOTHING, Content, Form
from xds.raw.resource_file import Key, Parsed, RawFile, RawResource


@dataclass(frozen=True)
class RawBook:
    """All files of one form by path. Immutable; what an edit does not touch keeps its identity."""

    form: Form = FORM
    _files: LastGood[RawFile] = field(default_factory=LastGood, repr=False)  # the texts may hold secrets

    @classmethod
    def seeded(cls, texts: Mapping[str, str], form: Form = FORM) -> Self:
        """From the texts that the store kept, all stale. A resource that no longer reads well is left out."""
        book = cls(form)
        readings = {path: book._reading(text, path) for path, text in texts.items()}
        return replace(book, _files=LastGood.seeded(readings))

    def edited(self, changes: Mapping[str, Content | None]) -> Self:
        """After these files were written, or deleted where None, while we watched: obeyed at once."""
        return replace(self, _files=self._files.edited(self._readings(changes))) if changes else self

    def compared(self, changes: Mapping[str, Content | None]) -> Self:
        """After the files were compared with an earlier life: one that is missing (None) or empty is held."""
        return replace(self, _files=self._files.compared(self._readings(changes))) if changes else self

    def confirm(self, paths: Collection[str]) -> Self:
        """Let go of these held files."""
        return replace(self, _files=self._files.confirm(paths))

    @cached_property
    def files(self) -> tuple[RawFile, ...]:
        """What is in force, by path."""
        return tuple(entry.value for entry in self._files.entries.values() if entry.value is not None)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Of all files, by path and position."""
        return in_order((*self._files.problems, *conflict_problems(self.files)))

    @property
    def held(self) -> tuple[str, ...]:
        """Paths that wait for `confirm`."""
        return self._files.held

    @property
    def stale(self) -> tuple[str, ...]:
        """Paths of files of which nothing is in force as it is now."""
        return self._files.stale

    @property
    def good_texts(self) -> Mapping[str, str]:
        """What a store must keep: a text of every file that says what is in force of it."""
        return self._files.good_texts

    def _readings(self, changes: Mapping[str, Content | None]) -> Mapping[str, Reading[RawFile] | None]:
        return {
            path: None if content is None else self._reading(content, path, self._value(path))
            for path, content in changes.items()
        }

    def _value(self, path: str) -> RawFile | None:
        entry = self._files.entries.get(path)
        return entry.value if entry is not None else None

    def _reading(self, content: Content, path: str, last: RawFile | None = None) -> Reading[RawFile]:
        before = last.resources if last else NOTHING
        parsed = self.form.parse(content, path, before)
        if parsed.nodes is None:
            return Reading(parsed.text, None, parsed.problems)
        kept = dict(_kept(parsed, before))
        template = parsed.cluster_template
        if template is None:
            template = last.cluster_template if last else ""
        file = RawFile(
            parsed.path,
            parsed.text,
            parsed.nodes,
            MappingProxyType({**{key: _same(before.get(key), new) for key, new in parsed.good.items()}, **kept}),
            parsed.overrules,
            template,
        )
        is_whole = not parsed.bad and not parsed.unnamed and parsed.cluster_template is not None
        return Reading(parsed.text if is_whole else self.form.text(file), file, parsed.problems)


def _kept(parsed: Parsed, before: Mapping[Key, RawResource]) -> Iterator[tuple[Key, RawResource]]:
    """What stays in force though the file does not say it (well) any more."""
    for key, resource in before.items():
        if key not in parsed.good and (parsed.unnamed or key in parsed.bad):
            yield key, resource


def _same(old: RawResource | None, new: RawResource) -> RawResource:
    """With the very resource of before, if it has not changed: streams compare by identity first."""
    return new if old is None or old.resource != new.resource else replace(new, resource=old.resource)
