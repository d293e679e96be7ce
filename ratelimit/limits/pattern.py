"""Patterns of limit files: text in which `*` stands for any characters, or none."""


class Pattern:
    """Compiled once. What is before the first `*` begins the text, what is after the last ends it, and the parts
    between are found in order, each as far left as it can be: so matching never backtracks."""

    __slots__ = ("_least", "_middle", "_prefix", "_suffix", "text")

    def __init__(self, text: str) -> None:
        """Raises ValueError where there is no `*`."""
        first, *others = text.split("*")
        if not others:
            raise ValueError(f"{text!r} is no pattern")
        self.text = text
        self._prefix, self._suffix = first, others[-1]
        self._middle = tuple(part for part in others[:-1] if part)
        self._least = len(first) + sum(len(part) for part in others)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def matches(self, text: str) -> bool:
        """Whether the whole text is of this pattern."""
        if len(text) < self._least or not (text.startswith(self._prefix) and text.endswith(self._suffix)):
            return False
        at, end = len(self._prefix), len(text) - len(self._suffix)
        for part in self._middle:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    def covers(self, other: str) -> bool:
        """Whether all that this other text or pattern matches is matched by this one too."""
        # A `*` of the other stands for text that only a `*` can match.
        return self.matches(other)


def is_pattern(text: str) -> bool:
    return "*" in text


def may_meet(one: str, other: str) -> bool:
    """Whether a text may be of both patterns (or plain texts), as far as their beginnings and ends tell."""
    first, last = one.split("*"), other.split("*")
    if len(first) == 1:
        return Pattern(other).matches(one) if len(last) > 1 else one == other
    if len(last) == 1:
        return Pattern(one).matches(other)
    begins = first[0].startswith(last[0]) or last[0].startswith(first[0])
    return begins and (first[-1].endswith(last[-1]) or last[-1].endswith(first[-1]))
