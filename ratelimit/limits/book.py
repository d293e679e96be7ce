"""A directory of limit files as one value: the tree in force, and what is wrong.

Each file keeps its last good version (`operator_files.last_good`), so a bad edit costs its own domain's news only.
Between files:

* a domain belongs to one file. Where domains are merged, a descriptor of the first level (key and value) does, and a
  domain's descriptors stand in the order of the files' paths.
* an edit that takes what another file has is the error of the edited file. It waits, and is taken by itself once the
  other lets go. Files that are new together are taken in the order of their paths.
* when the last good file goes, that is taken for a mount or a copy that failed: what goes last stays in force until
  there is a good file again, or the removal is confirmed.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Self

from operator_files import yaml
from operator_files.last_good import Entry, LastGood, Reading
from operator_files.problem import Problem, in_order
from ratelimit.limits import codes
from ratelimit.limits.claims import Claim, Claims, claims_of
from ratelimit.limits.descriptor import DomainFile
from ratelimit.limits.parse import MAX_BYTES, Content, parse
from ratelimit.limits.tree import DomainTree, LimitTree

_Readings = Mapping[str, Reading[DomainFile] | None]


@dataclass(frozen=True, slots=True)
class Options:
    """`merge_domains`: several files may describe one domain (MERGE_DOMAIN_CONFIG of envoyproxy/ratelimit).
    `shared_keys`: counters are shared with an envoyproxy/ratelimit, so what it has no like of is an error."""

    merge_domains: bool = False
    shared_keys: bool = False


@dataclass(frozen=True, slots=True)
class LimitBook:
    """All limit files by path. `tree` is what is in force; its domains keep their identity while unchanged."""

    options: Options = field(default_factory=Options)
    tree: LimitTree = field(default_factory=LimitTree)
    _files: LastGood[DomainFile] = field(default_factory=LastGood)
    _waiting: Mapping[str, Reading[DomainFile]] = field(default_factory=lambda: MappingProxyType({}))
    _gone: frozenset[str] = frozenset()
    _refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The domains that texts with errors speak of, by path."""

    @classmethod
    def seeded(cls, texts: Mapping[str, str], options: Options | None = None) -> Self:
        """From the texts that the store kept, all stale. A text that no longer reads well, or that another took the
        domain of, is left out."""
        book = cls(options or Options())._after(cls(options or Options())._parsed(texts), live=True)
        readings = {path: Reading(entry.good_text or "", entry.value) for path, entry in book._files.entries.items()}
        return replace(book, _files=LastGood.seeded(readings), _waiting=MappingProxyType({}))

    def edited(self, changes: Mapping[str, Content | None]) -> Self:
        """After these files were written, or deleted where None, while we watched: obeyed at once, unless no good one
        is left."""
        read = self._parsed(changes)
        book = self
        if any(reading and reading.value for reading in read.values()):
            book = replace(self, _files=self._files.confirm(set(self._none_left) - read.keys()), _gone=frozenset())
        after = book._after(read, live=True)
        lost = book._present - after.entries.keys()
        if after._present or not lost:
            return after
        files = after._files.still(lost, book._files)
        return replace(after, tree=book.tree, _files=files, _gone=book._gone | lost)._compiled()

    def compared(self, changes: Mapping[str, Content | None]) -> Self:
        """After the files were compared with an earlier life: one that is missing (None) or empty is held, and
        serves on until `confirm`, unless another file describes what it did."""
        read = self._parsed(changes)
        if any(reading and reading.value for reading in read.values()):
            return replace(self, _gone=frozenset())._after({**dict.fromkeys(self._none_left), **read}, live=False)
        return self._after(read, live=False)

    def confirm(self, paths: Iterable[str]) -> Self:
        """Let go of these held files."""
        held = set(paths) & set(self.held)
        return self._after(dict.fromkeys(sorted(held)), live=True) if held else self

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all files, by path and position."""
        names: dict[str, set[str]] = defaultdict(set)
        for file in self._in_force().values():
            names[file.domain] |= file.names
        wanted = [
            problem
            for path, file in self._in_force().items()
            if not self._files.entries[path].stale
            for name, problems in file.wanted.items()
            if name not in names[file.domain]
            for problem in problems
        ]
        return in_order((*self._files.problems, *wanted, *self._none_left_problem()))

    def errors_of(self, domain: str) -> tuple[str, ...]:
        """Of each file that speaks of this domain and has an error: the first one, and what is in force instead."""
        first: dict[str, Problem] = {}
        for problem in self.problems:
            if problem.is_error:
                first.setdefault(problem.file, problem)
        found = []
        for path, problem in first.items():
            good = self.entries[path].value
            if domain in (self._refused.get(path), good.domain if good is not None else None):
                what = "its last good version is in force" if good is not None else "nothing of it is in force"
                found.append(f"{path} describes the domain `{domain}` and has an error, so {what}: {problem.said()}")
        return tuple(found)

    @property
    def held(self) -> tuple[str, ...]:
        """Paths that wait for `confirm`."""
        return self._files.held

    @property
    def stale(self) -> tuple[str, ...]:
        """Paths whose version in force is not what the file says now."""
        return self._files.stale

    @property
    def good_texts(self) -> Mapping[str, str]:
        """What a store must keep: the text in force of every file."""
        return self._files.good_texts

    @property
    def entries(self) -> Mapping[str, Entry[DomainFile]]:
        """Every file by path: what is in force of it, and what is wrong with its newest text."""
        return self._files.entries

    @property
    def stale_domains(self) -> frozenset[str]:
        """Domains of which an older version is in force than their files say."""
        return frozenset(entry.value.domain for entry in self.entries.values() if entry.stale and entry.value)

    @property
    def _present(self) -> frozenset[str]:
        """Files with a good version that are not only held."""
        return frozenset(path for path in self._in_force() if not self.entries[path].held)

    @property
    def _none_left(self) -> tuple[str, ...]:
        """Files that are held because with them the last good one went."""
        return tuple(path for path in self.held if path in self._gone)

    def _none_left_problem(self) -> Iterator[Problem]:
        if gone := self._none_left:
            others = f", and {len(gone) - 1} more with it" if len(gone) > 1 else ""
            message = f"no good limit file is left: this one is gone{others}; its limits stay in force"
            fix = (
                "put it back; to lift all limits, leave a file with its domain and no descriptors, or confirm the "
                "removal with `swashplate confirm limit-files`"
            )
            yield Problem(codes.NONE_LEFT.id, message, gone[0], fix=fix)

    def _parsed(self, changes: Mapping[str, Content | None]) -> _Readings:
        read = partial(parse, shared_keys=self.options.shared_keys)
        return {path: None if content is None else read(content, path) for path, content in changes.items()}

    def _in_force(self) -> dict[str, DomainFile]:
        return {path: entry.value for path, entry in self._files.entries.items() if entry.value is not None}

    def _after(self, changes: _Readings, *, live: bool) -> Self:
        """With these files, and with those that waited if they can be taken now."""
        if not changes and not self._waiting:
            return self
        read = {**{path: reading for path, reading in self._waiting.items() if path not in changes}, **changes}
        wanted = {path: reading.value for path, reading in sorted(read.items()) if reading and reading.value}
        book = self._renamed(changes) if live else self
        yielding = () if live else self._yielding(wanted, changes)
        standing = {path: file for path, file in book._in_force().items() if path not in yielding}
        if live:
            standing = {path: file for path, file in standing.items() if changes.get(path, ...) is not None}
        refused = Claims(standing, wanted, merged=self.options.merge_domains).refused()
        readings = {**read, **{path: self._refusal(path, read[path], against) for path, against in refused.items()}}
        files = book._files.edited(readings) if live else book._files.compared(readings).confirm(yielding)
        waiting = {path: reading for path, reading in sorted(read.items()) if reading is not None and path in refused}
        kept = {path: domain for path, domain in self._refused.items() if path not in readings}
        erring = {path: _domain_in(each.text) for path, each in readings.items() if each and each.value is None}
        kept |= {path: domain for path, domain in erring.items() if domain}
        return replace(
            self, _files=files, _waiting=MappingProxyType(waiting), _refused=MappingProxyType(kept)
        )._compiled()

    def _renamed(self, changes: _Readings) -> Self:
        """A file that was renamed and broken in one edit keeps the last good version of its old name."""
        book, in_force = self, self._in_force()
        gone = sorted(path for path, reading in changes.items() if reading is None and path in in_force)
        broken = {
            path: reading.text
            for path, reading in sorted(changes.items())
            if reading is not None and reading.value is None and path not in in_force
        }
        # One that is cut off before its domain can only be the one that is gone, where that is one.
        is_plain = len(gone) == len(broken) == 1
        for path, text in broken.items():
            for old in gone:
                is_same = _speaks_of(text, in_force[old].domain) or (is_plain and not _names_a_domain(text))
                if is_same and book._files.entries.get(old) is not None:
                    book = replace(book, _files=book._files.renamed(old, path))
                    break
        return book

    def _yielding(self, wanted: Mapping[str, DomainFile], changes: _Readings) -> frozenset[str]:
        """Files that are missing, or held already, of which others describe all that they did: moved, not lost."""
        merged = self.options.merge_domains
        new: set[Claim] = {claim for file in wanted.values() for claim in claims_of(file, merged=merged)}
        missing = {*self.held, *(path for path, reading in changes.items() if reading is None or reading.is_empty)}
        return frozenset(
            path
            for path, file in self._in_force().items()
            if path in missing and path not in wanted and new.issuperset(claims_of(file, merged=merged))
        )

    def _refusal(
        self, path: str, reading: Reading[DomainFile] | None, against: Mapping[Claim, str]
    ) -> Reading[DomainFile]:
        if reading is None or reading.value is None:
            raise ValueError(f"{path} claims nothing")
        document = yaml.parse(reading.text, path, max_bytes=MAX_BYTES, merge_keys=True)
        problems = [_taken(document, path, reading.value, claim, other) for claim, other in against.items()]
        return Reading(reading.text, None, in_order((*reading.problems, *problems)))

    def _compiled(self) -> Self:
        """With a tree of what is in force; a domain of which all files are as they were is the same object."""
        parts: dict[str, list[DomainFile]] = defaultdict(list)
        for _, file in sorted(self._in_force().items()):
            parts[file.domain].append(file)
        domains = [self._domain(name, files) for name, files in parts.items()]
        same = len(domains) == len(self.tree.domains) and all(
            self.tree.domains.get(domain.name) is domain for domain in domains
        )
        return self if same else replace(self, tree=LimitTree(domains))

    def _domain(self, name: str, files: Collection[DomainFile]) -> DomainTree:
        descriptors = tuple(descriptor for file in files for descriptor in file.descriptors)
        known = self.tree.domains.get(name)
        # Descriptors compare by identity.
        return known if known is not None and known.descriptors == descriptors else DomainTree(name, descriptors)


def _speaks_of(text: str, domain: str) -> bool:
    """Whether a text that need not be YAML is most likely about this domain."""
    return (
        re.search(rf"""^["']?domain["']?:[ ]*["']?{re.escape(domain)}["']?\s*(#|$)""", text, re.MULTILINE) is not None
    )


def _domain_in(text: str) -> str | None:
    """The domain that a text names, which need not be YAML."""
    found = re.search(
        r"""^(?:\{\s*["']?|[ \t]*"|'?)domain["']?[ \t]*:[ \t]*(?:"([^"\n]+)"|'([^'\n]+)'|([^"'#,}\n]+))""",
        text,
        re.MULTILINE,
    )
    return next(name.strip() for name in found.groups() if name) if found else None


def _names_a_domain(text: str) -> bool:
    """Whether a text that need not be YAML gets as far as the name of a domain, and past it."""
    return re.search(r"""^["']?domain["']?:[ ]*\S.*\n""", text, re.MULTILINE) is not None


def _taken(document: yaml.Document | Problem, path: str, file: DomainFile, claim: Claim, other: str) -> Problem:
    """What is said of a file that claims what another has."""
    if claim.descriptor is None:
        code = codes.DOMAIN_TAKEN
        loc: yaml.Loc = ("domain",)
        message = f"the domain `{claim.domain}` is already described by {other}"
        fix = "put the two files together, or merge domains: --merge-domains (`serve`: --ratelimit-merge-domains)"
    else:
        key, value = claim.descriptor
        code = codes.DESCRIPTOR_TAKEN
        index = next(at for at, top in enumerate(file.descriptors) if (top.key, top.value) == claim.descriptor)
        loc = ("descriptors", index, "key")
        said = f" with the value `{value}`" if value else ""
        message = f"the key `{key}`{said} of the domain `{claim.domain}` is already described by {other}"
        fix = "describe it in one of the two files"
    if isinstance(document, Problem):
        return Problem(code.id, message, path, fix=fix)
    return document.problem(code, message, loc, fix=fix)
