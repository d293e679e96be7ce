"""What counters are called in a store."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from ratelimit.counters.check import Algorithm, Rule

Entries = Sequence[tuple[str, str]]


class HashTag(StrEnum):
    """What decides the slot of a counter on a Redis Cluster."""

    COUNTER = "counter"
    """The whole key: counters are spread, each decided by itself."""
    DOMAIN = "domain"
    """The domain: all of its counters are in one slot, and a call's are decided together."""


class CounterName(NamedTuple):
    """A key, read. `window` is what `window_code` makes of a rule."""

    domain: str
    window: str
    entries: tuple[tuple[str, str], ...]


class Keys(NamedTuple):
    """Every part of a key has its length (in bytes) before it, so `a_b` + `c` and `a` + `b_c` never meet. The window
    is not in the key but in the value; the kind and length of windows are, so several limits of one descriptor never
    share a counter, and a raised limit goes on with what was counted."""

    prefix: str = "ratelimit"
    hash_tag: HashTag = HashTag.COUNTER

    def key(self, domain: str, identity: Entries, rule: Rule) -> bytes:
        """The counter of what `identity` names (`Match.identity`), as `rule` counts."""
        return self.head(domain, rule) + self.tail(identity)

    def head(self, domain: str, rule: Rule) -> bytes:
        """What the keys of a limit begin with, whatever the descriptor: worth keeping with the limit."""
        return self.of_domain(domain) + _part(window_code(rule).encode())

    def tail(self, identity: Entries) -> bytes:
        """What follows the head."""
        text = ""
        for key, value in identity:
            text += f"{len(key)}:{key}{len(value)}:{value}"
        if text.isascii():
            return text.encode()
        return b"".join([_part(text.encode()) for entry in identity for text in entry])

    def of_domain(self, domain: str) -> bytes:
        """What the keys of all counters of a domain begin with."""
        # Redis hashes what stands in the first braces, and the whole key where there is nothing in them: braces in a
        # caller's value must not choose the slot.
        if self.hash_tag is HashTag.DOMAIN:
            return b"%b{%b}" % (self.prefix.encode(), _part(domain.encode()))
        return b"%b{}%b" % (self.prefix.encode(), _part(domain.encode()))

    @property
    def start(self) -> bytes:
        """What all keys begin with."""
        return self.prefix.encode() + (b"{" if self.hash_tag is HashTag.DOMAIN else b"{}")

    def read(self, key: bytes) -> CounterName | None:
        """Takes a key apart; None where it is no key of this kind."""
        if not key.startswith(self.start):
            return None
        try:
            domain, at = _read(key, len(self.start))
            if self.hash_tag is HashTag.DOMAIN:
                at += len(b"}")
            window, at = _read(key, at)
            texts: list[str] = []
            while at < len(key):
                text, at = _read(key, at)
                texts.append(text)
            return CounterName(domain, window, tuple(zip(texts[::2], texts[1::2], strict=True)))
        except ValueError:
            return None


class CompatibleKeys(NamedTuple):
    """The names that envoyproxy/ratelimit gives to counters, without the window's start that the store adds. They
    can mean several counters, as there."""

    prefix: str = ""

    def key(self, domain: str, identity: Entries, rule: Rule) -> bytes:
        """As `Keys.key`; one fixed-window limit a descriptor, so `rule` is not in the name."""
        return self.head(domain, rule) + self.tail(identity)

    def head(self, domain: str, rule: Rule) -> bytes:
        """As `Keys.head`."""
        return self.of_domain(domain)

    def tail(self, identity: Entries) -> bytes:
        """As `Keys.tail`."""
        return "".join([f"{key}_{value}_" for key, value in identity]).encode()

    def of_domain(self, domain: str) -> bytes:
        return f"{self.prefix}{domain}_".encode()

    @property
    def start(self) -> bytes:
        return self.prefix.encode()

    def read(self, key: bytes) -> CounterName | None:
        """Always None: where a part ends cannot be told."""
        return None


def window_code(rule: Rule) -> str:
    """The kind and length of a rule's windows: `60`, `sliding60`, `bucket60`, `month*1@Europe/Berlin`."""
    if rule.calendar is not None:
        return f"{rule.calendar.unit.name.lower()}*{rule.calendar.multiple}@{rule.calendar.zone}"
    kind = {Algorithm.FIXED_WINDOW: "", Algorithm.SLIDING_WINDOW: "sliding", Algorithm.TOKEN_BUCKET: "bucket"}
    return f"{kind[rule.algorithm]}{rule.seconds}"


def _part(text: bytes) -> bytes:
    return b"%d:%b" % (len(text), text)


def _read(key: bytes, at: int) -> tuple[str, int]:
    """A part and where it ends. Raises ValueError."""
    colon = key.index(b":", at)
    end = colon + 1 + int(key[at:colon])
    text = key[colon + 1 : end]
    if end > len(key):
        raise ValueError(f"a part of {key!r} is cut off")
    return text.decode(), end
