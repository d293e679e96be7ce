"""How long changes take to the last client: from the event that caused them until the last ACK.

A change becomes a wave of responses for each type that it touches. The wave is over when all that were sent are
answered and none has been sent for a while: clients that the gate makes wait, or that are slow, get theirs later.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

QUIET: Final = 5.0
"""Seconds without anything new after which a wave with no open response is over."""

LONGEST: Final = 120.0
"""Seconds after which it is over for those that have answered. Who has not is in other figures."""

MOST: Final = 256
"""Waves remembered at a time; the oldest goes first."""


class Arrival(NamedTuple):
    """A change has reached the last client, as far as one type goes, after so many seconds."""

    type_url: str
    seconds: float


@dataclass(slots=True)
class _Wave:
    open: Counter[str] = field(default_factory=Counter)
    last: dict[str, float] = field(default_factory=dict)
    active: float = 0.0


class Convergence:
    """Waves are known by when their cause happened (`origin`); responses of other causes do not count.

    Times are unix seconds.
    """

    def __init__(self) -> None:
        self._waves: OrderedDict[float, _Wave] = OrderedDict()

    def began(self, origin: float, now: float) -> None:
        self._waves.setdefault(origin, _Wave()).active = now

    def pushed(self, type_url: str, origin: float, now: float) -> None:
        if (wave := self._waves.get(origin)) is not None:
            wave.open[type_url] += 1
            wave.active = now

    def taken(self, type_url: str, origins: Iterable[float], now: float) -> None:
        """A client has taken responses of these causes."""
        for wave in self._answered(type_url, origins):
            wave.last[type_url] = now
            wave.active = now

    def lost(self, type_url: str, origins: Iterable[float]) -> None:
        """They will not be taken: the client has refused them, or it is gone."""
        self._answered(type_url, origins)

    def _answered(self, type_url: str, origins: Iterable[float]) -> list[_Wave]:
        waves = [wave for origin in origins if (wave := self._waves.get(origin)) is not None]
        for wave in waves:
            wave.open[type_url] -= 1
        return waves

    def arrived(self, now: float) -> list[Arrival]:
        """Of waves that are over by now, told once."""
        over = [origin for origin, wave in self._waves.items() if _is_over(origin, wave, now)]
        over += list(self._waves)[: max(0, len(self._waves) - MOST)]
        return [
            Arrival(type_url, last - origin)
            for origin in dict.fromkeys(over)
            for type_url, last in self._waves.pop(origin).last.items()
        ]

    def __len__(self) -> int:
        return len(self._waves)


def _is_over(origin: float, wave: _Wave, now: float) -> bool:
    settled = not any(count > 0 for count in wave.open.values())
    return (settled and now >= wave.active + QUIET) or now >= origin + LONGEST
