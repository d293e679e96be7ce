"""What the documentation says, in pieces that can be tested: pages, fenced blocks, commands, links."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<path>[\w./-]+\.yaml)$")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `info` are the words after the fence: the language, and marks for the tests."""

    page: str
    line: int
    info: tuple[str, ...]
    text: str

    @property
    def language(self) -> str:
        return self.info[0] if self.info else ""

    @property
    def file(self) -> str | None:
        """The file that the first line names, `# routes/checkout.yaml`."""
        found = _FILE.match(self.text.partition("\n")[0])
        return found["path"] if found else None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A page of Markdown by its path from the repository's root."""

    path: str

    def __str__(self) -> str:
        return self.path

    @cached_property
    def text(self) -> str:
        return (ROOT / self.path).read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(
            Block(self.path, self.text.count("\n", 0, found.start()) + 1, tuple(found["info"].split()), found["text"])
            for found in _BLOCK.finditer(self.text)
        )

    @cached_property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return _BLOCK.sub("", self.text)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What a link to a heading has behind the `#`, by GitHub's rule."""
        return frozenset(_slug(heading) for heading in _HEADING.findall(self.prose))

    @property
    def links(self) -> Iterator[str]:
        """Targets of the links that stay in the repository."""
        found = (match["target"] for match in _LINK.finditer(_CODE.sub("", self.prose)))
        return (target for target in found if "://" not in target)

    @property
    def code(self) -> Iterator[str]:
        """What stands between backticks in the prose."""
        return iter(_CODE.findall(self.prose))

    @property
    def shell_lines(self) -> Iterator[tuple[Block, str]]:
        """Every line that a reader is meant to type."""
        for block in self.blocks:
            for line in block.text.splitlines():
                if block.language == "sh":
                    yield block, line
                elif block.language == "console" and line.startswith("$ "):
                    yield block, line.removeprefix("$ ")


def pages() -> list[Page]:
    """All pages that people read."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [Page(str(path.relative_to(ROOT))) for path in found]


def written_by_hand() -> list[Page]:
    """All of them but the reference, which is made from the code."""
    return [page for page in pages() if not page.path.startswith("docs/reference/")]


def words(line: str) -> list[str]:
    """A command line as a shell would split it, up to a redirection, a pipe or a comment."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found = []
    for word in lexer:
        if word and set(word) <= set("|&;<>()"):
            break
        found.append(word)
    return found


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
