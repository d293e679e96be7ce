"""Text to plain data that knows where every key and value stands.

YAML 1.2's core schema (yaml.org/spec/1.2.2, section 10.3) on libyaml's parser, so `no` and `on` are strings, `12:30`
is a string, and octal is `0o17`. JSON is YAML, and takes a faster way to the same data. Keys are always text, as
in JSON. Whatever a file says becomes data or a Problem, never an exception.
"""

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import yaml
from yaml._yaml import CParser

from operator_files import codes
from operator_files.plain_data import core_scalar, fast_json
from operator_files.problem import Code, Problem, Severity
from operator_files.syntax import plainly

Loc = Sequence[str | int]
"""A path into the data: keys of mappings and indexes of lists."""

DEFAULT_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_DEPTH: Final = 100
_MAX_ALIASED: Final = 20_000
"""Values that aliases may add to a file in all: a thousand repeated policies, but no billion laughs."""

_NOT_ALLOWED = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = "plain"
_STR: Final = _TAG + "str"
_MAP: Final = _TAG + "map"
_SEQ: Final = _TAG + "seq"


class Mark(NamedTuple):
    """A place in a file: line and column from 1 in characters, and how many characters it spans."""

    line: int
    column: int
    width: int = 1


_Child = tuple[yaml.Node | None, yaml.Node]
"""The key's node (None in a list) and the value's, one step down."""


class Document:
    """A file's text and its data, with the place of every part of it."""

    __slots__ = ("_by_key", "_lines", "_root", "data", "file", "text")

    def __init__(self, file: str, text: str, data: object, root: yaml.Node | None = None) -> None:
        self.file = file
        self.text = text
        self.data = data
        self._root = root
        self._lines: list[str] | None = None
        self._by_key: dict[yaml.MappingNode, dict[str, _Child]] = {}

    def at(self, loc: Loc, *, key: bool = False) -> Mark:
        """Where the value at `loc` stands, or its key; for what is not there, the nearest place around it."""
        node, key_node = self._nodes()
        for step in loc:
            child = self._child(node, step)
            if child is None:
                key = key_node is not None
                break
            key_node, node = child
        chosen = key_node if key and key_node is not None else node
        return self._mark_of(chosen)

    def problem(
        self,
        code: Code,
        message: str,
        loc: Loc = (),
        *,
        fix: str = "",
        key: bool = False,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        """A Problem at the value at `loc` (at its key, when `key`)."""
        return self.problem_at(code, message, self.at(loc, key=key), fix=fix, severity=severity)

    def problem_at(
        self, code: Code, message: str, mark: Mark, *, fix: str = "", severity: Severity = Severity.ERROR
    ) -> Problem:
        """A Problem at a place that is already known."""
        return Problem(
            code.id, message, self.file, mark.line, mark.column, mark.width, severity, fix, self.line(mark.line)
        )

    def line(self, number: int) -> str:
        """The text of a line (from 1), without its end; empty where there is none."""
        if self._lines is None:
            self._lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", self.text)  # as libyaml counts them
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def written(self, loc: Loc) -> str:
        """What stands at `loc`, as far as it is on one line."""
        mark = self.at(loc)
        return self.line(mark.line)[mark.column - 1 : mark.column - 1 + mark.width]

    def _nodes(self) -> tuple[yaml.Node | None, yaml.Node | None]:
        if self._root is None:
            # JSON came by the fast way. What libyaml cannot read of it (escaped surrogate pairs) has no positions.
            try:
                self._root = _compose(self.text)
            except yaml.YAMLError:
                self._root = None
        return self._root, None

    def _child(self, node: yaml.Node | None, step: str | int) -> _Child | None:
        if isinstance(node, yaml.MappingNode):
            return self._own_child(node, step) or self._merged_child(node, step)
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
            return None, node.value[step]
        return None

    def _own_child(self, node: yaml.MappingNode, step: str | int) -> _Child | None:
        # Remembered: a file with a problem for each of 20,000 keys took a quarter of a minute.
        if (children := self._by_key.get(node)) is None:
            pairs = reversed(node.value)  # of a key that comes twice the first counts
            children = {key.value: (key, value) for key, value in pairs if isinstance(key, yaml.ScalarNode)}
            self._by_key[node] = children
        return children.get(step) if isinstance(step, str) else None

    def _merged_child(self, node: yaml.MappingNode, step: str | int) -> _Child | None:
        """As `_child`, of what merge keys bring."""
        for key, value in node.value:
            if _is_merge(key):
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if (found := self._child(source, step)) is not None:
                        return found
        return None

    def _mark_of(self, node: yaml.Node | None) -> Mark:
        if node is None:
            return Mark(1, 1)
        start, end = node.start_mark, node.end_mark
        line = self.line(start.line + 1)
        stop = end.column if end.line == start.line else len(line.rstrip())
        return Mark(start.line + 1, start.column + 1, max(1, stop - start.column))


def parse(
    content: str | bytes, file: str, *, max_bytes: int = DEFAULT_MAX_BYTES, merge_keys: bool = False
) -> Document | Problem:
    """The document that a file holds, or why it holds none.

    `file` is the name that problems show. `merge_keys`: `<<` is obeyed as in YAML 1.1, for files that other programs
    read too. A byte order mark is skipped. A file that says nothing (empty, blank, only
    comments, or only null) is the Problem EMPTY, so that it cannot be taken for an answer.
    """
    if len(content) > max_bytes:
        return Problem(
            codes.TOO_LARGE.id,
            f"the file has {len(content):,} bytes; at most {max_bytes:,} are read",
            file,
            fix="split the file",
        )
    if isinstance(content, bytes):
        try:
            decoded = content.decode()
        except UnicodeDecodeError as error:
            return _not_utf8(content, error, file)
    else:
        decoded = content
    text = decoded.removeprefix("\ufeff")
    document = Document(file, text, None)
    if bad := _NOT_ALLOWED.search(text):
        mark = _mark_of_offset(text, bad.start())
        return document.problem_at(
            codes.CONTROL_CHARACTER,
            f"the character U+{ord(bad.group()):04X} may not stand in YAML",
            mark,
            fix='delete it, or write it as an escape in double quotes ("\\u....")',
        )
    document.data = fast_json(text)
    if document.data is None:
        found = _parse_yaml(document, merge_keys)
        if found is not None:
            return found
    return document


def _parse_yaml(document: Document, merge_keys: bool) -> Problem | None:
    """Fill in the document's data, or say why not."""
    try:
        root = _compose(document.text)
        constructor = _Constructor(document, merge_keys)
        document._root = root
        document.data = None if root is None else constructor.value(root)
    except _RefusedError as refused:
        return refused.problem
    except yaml.MarkedYAMLError as error:
        return _syntax_problem(document, error)
    except yaml.YAMLError as error:
        return document.problem_at(codes.SYNTAX, str(error).splitlines()[0], Mark(1, 1))
    if document.data is None:
        return Problem(
            codes.EMPTY.id, "the file is empty", document.file, fix="delete the file if this is what you want"
        )
    return None


class _Composer(CParser):
    """libyaml's parser with a resolver that leaves plain scalars to the constructor."""

    def resolve(self, kind: type[yaml.Node], _value: str | None, implicit: tuple[bool, bool] | bool) -> str:
        if kind is yaml.ScalarNode and not isinstance(implicit, bool):
            return _PLAIN if implicit[0] else _STR
        return _MAP if kind is yaml.MappingNode else _SEQ

    def descend_resolver(self, parent: object, index: object) -> None:
        """Path resolvers are not used."""

    def ascend_resolver(self) -> None:
        """Path resolvers are not used."""


def _compose(text: str) -> yaml.Node | None:
    with collector_paused():
        node: yaml.Node | None = _Composer(text).get_single_node()
    return node


@contextmanager
def collector_paused() -> Iterator[None]:
    """Composing allocates many objects and frees none: the cycle collector would take three quarters of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _RefusedError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Constructor:
    """Nodes to plain data, by the core schema."""

    def __init__(self, document: Document, merge_keys: bool) -> None:
        self._document = document
        self._merge_keys = merge_keys
        self._depth = 0
        self._seen: set[int] = set()
        self._aliased = 0

    def value(self, node: yaml.Node) -> object:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._enter(node)
        data: object = self._mapping(node) if isinstance(node, yaml.MappingNode) else self._sequence(node)
        self._depth -= 1
        return data

    def _enter(self, node: yaml.Node) -> None:
        if node.tag not in (_MAP, _SEQ) or (node.tag == _MAP) is not isinstance(node, yaml.MappingNode):
            raise self._refused(codes.TAG, f"the tag `{_shown(node.tag)}` is not known here", node, "leave it out")
        # An alias is the very same node again, so a repetition is told by identity, and a cycle by the depth.
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._refused(
                codes.EXPANSION, f"values are nested more than {_MAX_DEPTH} deep, or contain themselves", node
            )
        if id(node) in self._seen:
            self._aliased += 1 + len(node.value)
        self._seen.add(id(node))
        if self._aliased > _MAX_ALIASED:
            raise self._refused(
                codes.EXPANSION,
                f"the file's aliases repeat more than {_MAX_ALIASED:,} values",
                node,
                "write less through aliases",
            )

    def _sequence(self, node: yaml.Node) -> list[object]:
        return [self.value(child) for child in node.value]

    def _mapping(self, node: yaml.Node) -> dict[str, object]:
        data: dict[str, object] = {}
        merged: list[dict[str, object]] = []
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._refused(codes.SYNTAX, "a key must be a single word or text", key_node)
            key = key_node.value
            if key in data:
                raise self._duplicate(key, node, key_node)
            if _is_merge(key_node) and self._merge_keys:
                merged += self._merged(value_node)
                continue
            if _is_merge(key_node):
                raise self._refused(
                    codes.MERGE_KEY,
                    "`<<` (merge) is not part of YAML 1.2",
                    key_node,
                    "write the keys out, or give the whole value by an alias",
                )
            data[key] = self.value(value_node)
        for other in merged:
            data = {**other, **data}
        return data

    def _merged(self, node: yaml.Node) -> list[dict[str, object]]:
        """What a merge key brings, the strongest first (yaml.org/type/merge.html)."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise self._refused(
                    codes.MERGE_KEY, "`<<` merges mappings only", node, "write the alias of a mapping, or of several"
                )
        return [self.value(source) for source in sources]  # type: ignore[misc]  # mappings become dicts

    def _scalar(self, node: yaml.ScalarNode) -> object:
        text: str = node.value
        if node.tag == _STR:
            return text
        if node.tag == _PLAIN:
            return self._plain(node, text)
        name = node.tag.removeprefix(_TAG)
        value = core_scalar(text)
        kinds: dict[str, tuple[type, ...]] = {
            "null": (type(None),),
            "bool": (bool,),
            "int": (int,),
            "float": (int, float),
        }
        if type(value) not in kinds.get(name, ()):
            raise self._refused(codes.TAG, f"the tag `{_shown(node.tag)}` does not fit here", node, "leave it out")
        return float(value) if name == "float" and isinstance(value, int) else value

    def _plain(self, node: yaml.ScalarNode, text: str) -> object:
        try:
            return core_scalar(text)
        except ValueError:
            raise self._refused(
                codes.WRONG_VALUE, "the number is too long", node, "quote it, if it is text"
            ) from None

    def _duplicate(self, key: str, node: yaml.Node, key_node: yaml.Node) -> _RefusedError:
        first = next(other for other, _ in node.value if other.value == key)
        return self._refused(
            codes.DUPLICATE_KEY,
            f"the key `{key}` comes twice; it is already on line {first.start_mark.line + 1}",
            key_node,
            "keep one of the two",
        )

    def _refused(self, code: Code, message: str, node: yaml.Node, fix: str = "") -> _RefusedError:
        mark = self._document._mark_of(node)
        return _RefusedError(self._document.problem_at(code, message, mark, fix=fix))


def _is_merge(key: yaml.Node) -> bool:
    return bool(key.value == "<<" and key.tag == _PLAIN)


def _shown(tag: str) -> str:
    return tag.replace(_TAG, "!!")


def _mark_of_offset(text: str, offset: int) -> Mark:
    before = re.split("\r\n|[\n\r\x85\u2028\u2029]", text[:offset])
    return Mark(len(before), len(before[-1]) + 1)


def _not_utf8(content: bytes, error: UnicodeDecodeError, file: str) -> Problem:
    readable = content[: error.start].decode()
    mark = _mark_of_offset(readable, len(readable))
    line = content.decode(errors="replace").splitlines()[mark.line - 1 : mark.line]
    return Problem(
        codes.NOT_UTF8.id,
        f"the byte 0x{content[error.start]:02X} here is not UTF-8",
        file,
        mark.line,
        mark.column,
        fix="save the file as UTF-8",
        source_line=line[0] if line else "",
    )


def _syntax_problem(document: Document, error: yaml.MarkedYAMLError) -> Problem:
    place = error.problem_mark or error.context_mark
    mark = Mark(place.line + 1, place.column + 1) if place else Mark(1, 1)
    said = error.problem or "this is not YAML"
    if "another document" in said:
        return document.problem_at(
            codes.SEVERAL_DOCUMENTS, "a second document begins here", mark, fix="put it into a file of its own"
        )
    if "nesting depth" in said:
        return document.problem_at(codes.EXPANSION, f"values are nested more than {_MAX_DEPTH} deep", mark)
    message, fix = plainly(said, document.line(mark.line), mark.column)
    if error.context and error.context_mark and error.context_mark.line + 1 != mark.line:
        message += f" ({error.context}, which begins on line {error.context_mark.line + 1})"
    return document.problem_at(codes.SYNTAX, message, mark, fix=fix)
