"""Text that others wrote, for a terminal: names of nodes, what proxies say of a refusal, names of clusters.

Whoever reaches a port of the server can write it, and a terminal obeys what is in it (ECMA-48 control functions).
"""

import unicodedata
from typing import Final

_STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of control and format characters (those of direction too), surrogates, and separators of
lines and paragraphs."""


def escaped(text: str, *, lines: bool = False) -> str:
    r"""The same on one line, with `\x1b` and its like for what a terminal would obey.

    With `lines`, newlines and tabs stay: for text whose lines are our own.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(char if char in kept else _shown(char) for char in text)


def _shown(char: str) -> str:
    return char.encode("unicode_escape").decode() if unicodedata.category(char) in _STEERING else char
