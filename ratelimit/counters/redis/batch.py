"""The checks of one script: what is sent, and what the answer says of each."""

import hashlib
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final, Protocol

from ratelimit.counters.algorithms import US
from ratelimit.counters.check import MOST, Failed, FailureKind, Outcome, Verdict
from ratelimit.counters.redis.connection import pack_command
from ratelimit.counters.redis.turn import Part
from ratelimit.counters.stats import StoreStats
from ratelimit.counters.terms import BUCKET, FIXED, SLIDING, Calendar, Terms
from ratelimit.counters.windows import bounds

_CALENDAR: Final = 4
_new = tuple.__new__


class Script:
    """A script of this package. `text` is loaded with every connection, so that calling it by `sha` is enough."""

    def __init__(self, name: str) -> None:
        self.text = files(__package__).joinpath(name).read_text()
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class Batch(Protocol):
    """The parts that one script decides."""

    parts: Sequence[Part]

    def packed(self, *, whole: bool = False) -> bytes:
        """The command; with the script's text where the server has lost it (`whole`)."""

    def settle(self, reply: list[Any], stats: StoreStats) -> str:
        """Settles all parts. Gives the error of a check that says something of the server, empty if there is none."""


MakeBatch = Callable[[Sequence[Part], float], Batch]
"""Makes a batch of parts of one slot, at a time (Unix seconds, by this machine's clock)."""


def pack(script: Script, keys: Sequence[bytes], numbers: Sequence[float], *, whole: bool) -> bytes:
    data = array("d", numbers)
    if sys.byteorder == "big":
        data.byteswap()
    call = ("EVAL", script.text) if whole else ("EVALSHA", script.sha)
    return pack_command((*call, len(keys), *keys, data.tobytes()))


def refusal(text: str) -> Failed:
    """What an error of one check comes to."""
    return Failed(FailureKind.WRONG_TYPE if text.startswith("WRONGTYPE") else FailureKind.REFUSED, text)


def numbers_of(terms: Terms, now: float) -> tuple[float, ...]:
    """A rule as the script reads it."""
    charged = terms.charge_denied + 2 * terms.denies
    if terms.kind == FIXED:
        if terms.calendar is not None:
            return (_CALENDAR, charged, terms.limit, *bounds(terms.calendar, int(now)))
        return FIXED, charged, terms.limit, terms.seconds, 0, 0, 0
    if terms.kind == SLIDING:
        return SLIDING, charged, terms.limit, terms.slot_us, 0, 0, 0
    return BUCKET, charged, terms.limit, terms.capacity, terms.scale, terms.tick_us, 0


class _Rules:
    """The rules of a batch, each once."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._known: dict[int, int] = {}
        self.numbers: list[float] = [0]

    def number(self, terms: Terms) -> int:
        """Its number in the batch. By identity, which is cheaper than equality: terms live as long as their check."""
        known = self._known.get(id(terms))
        if known is None:
            known = self._known[id(terms)] = len(self._known) + 1
            self.numbers[0] = known
            self.numbers.extend(numbers_of(terms, self._now))
        return known


class _Summed:
    """Checks whose counters can be asked once each, because nothing depends on their order: fixed windows that count
    denied calls too, without refunds. `hits` are those of each counter, added up."""

    def __init__(
        self, parts: Sequence[Part], hits: dict[bytes, int], terms: Mapping[bytes, Terms], now: float
    ) -> None:
        self.parts = parts
        self._keys = [*hits]
        windows: list[float] = [0]
        sums: list[float] = []
        known: dict[tuple[int, Calendar | None], int] = {}
        last, number = None, 0
        for key, total in hits.items():
            counter = terms[key]
            if counter is not last:
                last = counter
                window = counter.seconds, counter.calendar
                number = known.setdefault(window, len(known) + 1)
                if number > windows[0]:
                    windows[0] = number
                    windows.extend(_window_of(counter, now))
            sums += (number, total if total < MOST else MOST)
        self._numbers = windows + sums

    def packed(self, *, whole: bool = False) -> bytes:
        return pack(FIXED_SCRIPT, self._keys, self._numbers, whole=whole)

    def settle(self, reply: list[Any], stats: StoreStats) -> str:
        # What each counter holds before the next check of it, and how long until it begins anew.
        counts: dict[bytes, Any] = {}
        resets: dict[bytes, tuple[int, int]] = {}
        wrong, at = "", 0
        for key in self._keys:
            counts[key], reset_us = reply[at], reply[at + 1]
            resets[key] = -(-reset_us // US), reset_us
            at += 2
        for part in self.parts:
            outcomes: list[Outcome] = []
            for key, rule, hits in part.checks:
                before = counts[key]
                if isinstance(before, bytes):
                    failed = refusal(before.decode("utf-8", "replace"))
                    stats.failures[failed.kind] += 1
                    wrong = wrong or _of_server(failed)
                    outcomes.append(failed)
                    continue
                after = before + hits
                left = rule.limit - after
                counts[key] = after = after if after < MOST else MOST
                reset_s, reset_us = resets[key]
                verdict = (left < 0, before, after, left if left > 0 else 0, reset_s, False, reset_us)
                outcomes.append(_new(Verdict, verdict))
            part.settle(outcomes)
        return wrong


def _window_of(terms: Terms, now: float) -> tuple[float, float, float, float]:
    """As the script for fixed windows reads it."""
    return (terms.seconds, 0, 0, 0) if terms.calendar is None else bounds(terms.calendar, int(now))


class _InOrder:
    """Checks in the order of their arrival, each call whole."""

    def __init__(self, script: Script, parts: Sequence[Part], now: float) -> None:
        self.parts = parts
        self._script = script
        self._keys: dict[bytes, int] = {}
        keys, rules = self._keys, _Rules(now)
        calls: list[float] = []
        for part in parts:
            calls.append(len(part.checks))
            for key, rule, hits in part.checks:
                number = keys.setdefault(key, len(keys) + 1)
                calls += (number, rules.number(rule.terms), max(-MOST, min(hits, MOST)))
        self._numbers = rules.numbers + calls

    def packed(self, *, whole: bool = False) -> bytes:
        return pack(self._script, [*self._keys], self._numbers, whole=whole)

    def settle(self, reply: list[Any], stats: StoreStats) -> str:
        wrong, at = "", 0
        for part in self.parts:
            outcomes: list[Outcome] = []
            for _, rule, _ in part.checks:
                over, before, after, reset_us = reply[at : at + 4]
                at += 4
                if isinstance(over, bytes):
                    failed = refusal(over.decode("utf-8", "replace"))
                    stats.failures[failed.kind] += 1
                    wrong = wrong or _of_server(failed)
                    outcomes.append(failed)
                    continue
                left = rule.terms.capacity - after
                reset_s = -(-reset_us // US)
                verdict = (over == 1, before, after, left if left > 0 else 0, reset_s, False, reset_us)
                outcomes.append(_new(Verdict, verdict))
            part.settle(outcomes)
        return wrong


def _of_server(failed: Failed) -> str:
    return failed.detail if failed.kind is FailureKind.REFUSED else ""


SCRIPT: Final = Script("script.lua")
FIXED_SCRIPT: Final = Script("fixed.lua")


def make_batch(parts: Sequence[Part], now: float) -> Batch:
    """Sums what can be summed."""
    sums: dict[bytes, int] = {}
    terms: dict[bytes, Terms] = {}
    for part in parts:
        for key, rule, hits in part.checks:
            ours = rule.terms
            if hits < 0 or not ours.plain:
                return _InOrder(SCRIPT, parts, now)
            known = sums.get(key)
            if known is None:
                sums[key] = hits
                terms[key] = ours
                continue
            other = terms[key]
            if other is not ours and (other.seconds, other.calendar) != (ours.seconds, ours.calendar):
                return _InOrder(SCRIPT, parts, now)
            sums[key] = known + hits
    return _Summed(parts, sums, terms, now)
