"""The checks of one script: what is sent, and what the answer says of each."""

import hashlib
import sys
from array import array
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, Final, Protocol

from ratelimit.counters.algorithms import US
from ratelimit.counters.check import MOST, Failed, FailureKind, Outcome, Verdict
from ratelimit.counters.redis.connection import pack_command
from ratelimit.counters.redis.turn import Part
from ratelimit.counters.stats import StoreStats
from ratelimit.counters.terms import BUCKET, FIXED, SLIDING, Terms
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


class _Sum:
    """The hits of one counter, added up; later how many there were before the next check of it."""

    __slots__ = ("count", "problem", "reset_s", "reset_us", "terms")

    def __init__(self, count: int, terms: Terms) -> None:
        self.count = count
        self.terms = terms
        self.reset_s = 0
        self.reset_us = 0
        self.problem: Failed | None = None


class _Summed:
    """Checks whose counters can be asked once each, because nothing depends on their order: fixed windows that count
    denied calls too, without refunds."""

    def __init__(self, script: Script, parts: Sequence[Part], sums: dict[bytes, _Sum], now: float) -> None:
        self.parts = parts
        self._script = script
        self._sums = sums
        rules = _Rules(now)
        calls: list[float] = []
        last, rule = None, 0
        for number, counter in enumerate(sums.values(), 1):
            if counter.terms is not last:
                last = counter.terms
                rule = rules.number(last)
            calls += (1, number, rule, counter.count if counter.count < MOST else MOST)
        self._numbers = rules.numbers + calls

    def packed(self, *, whole: bool = False) -> bytes:
        return pack(self._script, [*self._sums], self._numbers, whole=whole)

    def settle(self, reply: list[Any], stats: StoreStats) -> str:
        wrong, at = "", 0
        for counter in self._sums.values():
            over, before, _, counter.reset_us = reply[at : at + 4]
            counter.count = before
            counter.reset_s = -(-counter.reset_us // US)
            at += 4
            if isinstance(over, bytes):
                counter.problem = refusal(over.decode("utf-8", "replace"))
                wrong = wrong or _of_server(counter.problem)
        for part in self.parts:
            outcomes: list[Outcome] = []
            for key, rule, hits in part.checks:
                counter = self._sums[key]
                if counter.problem is not None:
                    stats.failures[counter.problem.kind] += 1
                    outcomes.append(counter.problem)
                    continue
                before, reset_us = counter.count, counter.reset_us
                after = before + hits
                left = rule.limit - after
                counter.count = after = after if after < MOST else MOST
                verdict = (left < 0, before, after, left if left > 0 else 0, counter.reset_s, False, reset_us)
                outcomes.append(_new(Verdict, verdict))
            part.settle(outcomes)
        return wrong


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


def make_batch(parts: Sequence[Part], now: float) -> Batch:
    """Sums what can be summed."""
    sums: dict[bytes, _Sum] = {}
    for part in parts:
        for key, rule, hits in part.checks:
            terms = rule.terms
            if hits < 0 or not terms.plain:
                return _InOrder(SCRIPT, parts, now)
            known = sums.get(key)
            if known is None:
                sums[key] = _Sum(hits, terms)
                continue
            other = known.terms
            if other is not terms and (other.seconds, other.calendar) != (terms.seconds, terms.calendar):
                return _InOrder(SCRIPT, parts, now)
            known.count += hits
    return _Summed(SCRIPT, parts, sums, now)
