"""All service files of a directory as one value: what each says, and the services they make together.

Files may share a service where its ports agree. Where they do not, a live edit that contradicts another file is an
error of the edited file and is not taken; it is tried again with every later edit. At a start, where nobody knows
who came first, both are taken, the earlier path wins the port, and the later file is in error.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final, Self

from discovery.files import codes
from discovery.files.parse import Services, parse, place_of
from discovery.merge import Conflict, Described, merged
from mesh.service import ServiceName
from operator_files import codes as file_codes
from operator_files.last_good import LastGood, Reading
from operator_files.problem import Problem, Severity, in_order

Content = bytes | OSError | None
"""What a file holds now, why it cannot be read, or None: it is gone."""

_NOTHING: Final[Services] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ServiceBook:
    """Immutable: an edit makes the next one, in which unchanged services keep their identity.

    `services` is what the files in force say together. Paths are the names that problems show.
    """

    default_namespace: str
    services: Services = field(default_factory=lambda: _NOTHING)
    _files: LastGood[Services] = field(default_factory=LastGood)
    _paths: Mapping[ServiceName, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    _refused: Mapping[str, Reading[Services]] = field(default_factory=lambda: MappingProxyType({}))
    _contradictions: Mapping[ServiceName, tuple[Problem, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def seeded(cls, texts: Mapping[str, str], *, default_namespace: str) -> Self:
        """From the last good texts of an earlier life, all stale until their files are read."""
        readings = {path: parse(text, path, default_namespace=default_namespace) for path, text in texts.items()}
        return cls(default_namespace)._with(LastGood.seeded(readings), texts)

    def edited(self, changes: Mapping[str, Content]) -> Self:
        """After these files changed while they were watched (None: deleted): obeyed, down to nothing too."""
        return self._after(changes, live=True)

    def compared(self, changes: Mapping[str, Content]) -> Self:
        """After the files were found to differ from an earlier life's: missing and empty ones are held."""
        return self._after(changes, live=False)

    def confirm(self, paths: Collection[str]) -> Self:
        """Let go of held files."""
        return self._with(self._files.confirm(paths), paths)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all files, by path and position."""
        between = (problem for problems in self._contradictions.values() for problem in problems)
        return in_order((*self._files.problems, *between))

    @property
    def held(self) -> tuple[str, ...]:
        """Paths that wait for `confirm`."""
        return self._files.held

    @property
    def stale(self) -> tuple[str, ...]:
        """Paths whose value in force is not what the file says now."""
        return self._files.stale

    @property
    def good_texts(self) -> Mapping[str, str]:
        """What a store must keep: the text in force of every file."""
        return self._files.good_texts

    def services_in(self, path: str) -> Services:
        """What the version in force of a file says."""
        return _value(self._files, path)

    def _after(self, changes: Mapping[str, Content], *, live: bool) -> Self:
        if not changes:
            return self
        read = partial(parse, default_namespace=self.default_namespace)
        readings = {path: None if content is None else read(content, path) for path, content in changes.items()}
        if not live:
            readings = {path: self._empty_is_held(path, reading) for path, reading in readings.items()}
        readings = {**{path: reading for path, reading in self._refused.items() if path not in readings}, **readings}
        sound = {
            path: reading for path, reading in readings.items() if reading is not None and reading.value is not None
        }
        refused = self._refusals(
            sound, gone=[path for path, reading in readings.items() if reading is None], live=live
        )
        readings |= refused
        files = self._files.edited(readings) if live else self._renamed(self._files.compared(readings))
        kept = MappingProxyType({path: sound[path] for path in sorted(refused)})
        return replace(self._with(files, readings), _refused=kept)

    def _renamed(self, files: LastGood[Services]) -> LastGood[Services]:
        """Without held files whose services are all in files that are new: those were moved, not lost."""
        new = {name for path in files.entries if not self.services_in(path) for name in _value(files, path)}
        return files.confirm([path for path in files.held if _value(files, path).keys() <= new])

    def _empty_is_held(self, path: str, reading: Reading[Services] | None) -> Reading[Services] | None:
        """A list without services says as little as a file without text."""
        if reading is None or reading.value is None or reading.value or not self.services_in(path):
            return reading
        return Reading(reading.text, None, (Problem(file_codes.EMPTY.id, "the file lists no services", path),))

    def _refusals(
        self, sound: Mapping[str, Reading[Services]], gone: Iterable[str], *, live: bool
    ) -> dict[str, Reading[Services]]:
        """The readings that contradict other files and are not taken, each with the reason as its problem."""
        said = _Said(self._files, self._paths, gone)
        new = {path: reading.value or _NOTHING for path, reading in sorted(sound.items())}
        bound = [path for path in new if live or self.services_in(path)]
        # All at once, because files that change together may only fit together; then without what fits nowhere.
        for path, services in new.items():
            said.put(path, services)
        refused: list[str] = []
        while contradicting := [path for path in bound if path not in refused and said.contradicts(path, new[path])]:
            standing = [
                path for path in contradicting if said.contradicts(path, new[path], besides=new.keys() - set(refused))
            ]
            refused.append((standing or contradicting)[-1])
            said.drop(refused[-1])
        # One that was refused for the sake of another that was refused later may fit by now.
        for path in sorted(refused):
            if not said.contradicts(path, new[path]):
                said.put(path, new[path])
                refused.remove(path)
        return {path: self._refusal(path, sound[path], said) for path in refused}

    def _refusal(self, path: str, reading: Reading[Services], said: "_Said") -> Reading[Services]:
        problems = [
            self._problem(name, conflict, reading.text)
            for name, conflict in said.conflicts(path, reading.value or _NOTHING)
        ]
        return Reading(reading.text, None, in_order((*reading.problems, *problems)))

    def _problem(self, name: ServiceName, conflict: Conflict, text: str) -> Problem:
        code = codes.CONFLICT if conflict.whole_port else codes.DIFFERING_ENDPOINT
        severity = Severity.ERROR if conflict.whole_port else Severity.WARNING
        message = f"the service `{name}` is also in {conflict.winner}, where {conflict.reason}"
        fix = "make both say the same, or use another name"
        place = place_of(name, text, conflict.loser, default_namespace=self.default_namespace)
        if place is None:
            return Problem(code.id, message, conflict.loser, severity=severity, fix=fix)
        document, loc = place
        return document.problem(code, message, loc, fix=fix, severity=severity)

    def _with(self, files: LastGood[Services], touched: Iterable[str]) -> Self:
        """With these files; only what `touched` ones say or said is put together anew."""
        if files is self._files:
            return self
        paths, names = dict(self._paths), set[ServiceName]()
        for path in touched:
            for name in _value(self._files, path):
                paths[name] = tuple(other for other in paths[name] if other != path)
                names.add(name)
            for name in _value(files, path):
                paths[name] = tuple(sorted((*paths.get(name, ()), path)))
                names.add(name)
        services, contradictions = dict(self.services), dict(self._contradictions)
        for name in sorted(names):
            contradictions.pop(name, None)
            if not paths[name]:
                del paths[name]
                services.pop(name, None)
                continue
            service, conflicts, _ = merged([Described(path, _value(files, path)[name]) for path in paths[name]])
            if services.get(name) != service:
                services[name] = service
            if conflicts:
                entries = files.entries
                contradictions[name] = tuple(
                    self._problem(name, conflict, entries[conflict.loser].good_text or "") for conflict in conflicts
                )
        return type(self)(
            self.default_namespace,
            MappingProxyType(services),
            files,
            MappingProxyType(paths),
            self._refused,
            MappingProxyType(contradictions),
        )


class _Said:
    """What files say while an edit of several is being taken, file by file."""

    def __init__(
        self, files: LastGood[Services], paths: Mapping[ServiceName, tuple[str, ...]], gone: Iterable[str]
    ) -> None:
        self._files = files
        self._paths = paths
        self._new: dict[str, Services] = dict.fromkeys(gone, _NOTHING)
        self._new_paths: dict[ServiceName, set[str]] = {}

    def put(self, path: str, services: Services) -> None:
        """From now on the file says this."""
        self._new[path] = services
        for name in services:
            self._new_paths.setdefault(name, set()).add(path)

    def drop(self, path: str) -> None:
        """From now on the file says again what is in force."""
        for name in self._new.pop(path):
            self._new_paths[name].discard(path)

    def contradicts(self, path: str, services: Services, besides: Collection[str] = ()) -> bool:
        """Whether the file does not fit to what others say, except those of `besides`."""
        return any(conflict.winner not in besides for _, conflict in self.conflicts(path, services))

    def conflicts(self, path: str, services: Services) -> Iterator[tuple[ServiceName, Conflict]]:
        """What of the file contradicts the others so much that a port would be left out."""
        for name, service in services.items():
            others = sorted({*self._paths.get(name, ()), *self._new_paths.get(name, ())} - {path})
            parts = [Described(other, self._of(other)[name]) for other in others if name in self._of(other)]
            for conflict in merged([*parts, Described(path, service)]).conflicts if parts else ():
                if conflict.whole_port and conflict.loser == path:
                    yield name, conflict

    def _of(self, path: str) -> Services:
        new = self._new.get(path)
        return _value(self._files, path) if new is None else new


def _value(files: LastGood[Services], path: str) -> Services:
    entry = files.entries.get(path)
    return entry.value if entry is not None and entry.value is not None else _NOTHING
