"""What changes of endpoints mean, on one line each: for whoever asks later when an instance came, and why it went."""

from collections.abc import Iterable, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from discovery.outcome import Named, Outcome

MOST: Final = 20
"""Services of one change that have a line each; a first answer of a registry has thousands."""


class ChangeLog:
    """Called with the outcomes of each publication. `namespace` is the default one."""

    def __init__(self, log: FilteringBoundLogger, namespace: str) -> None:
        self._log = log
        self._namespace = namespace

    def __call__(self, outcomes: tuple[Outcome, ...]) -> None:
        if len(outcomes) > MOST:
            self._summary(outcomes)
            return
        for outcome in outcomes:
            self._log.info("endpoints changed: %s", self._said(outcome), **self._keys(outcome))

    def _said(self, outcome: Outcome) -> str:
        """`checkout: 1 in, 2 out`."""
        parts = []
        if outcome.appeared:
            parts.append("new")
        if outcome.vanished:
            parts.append("gone")
        for words, named in (
            ("in", outcome.added),
            ("out", outcome.removed),
            ("of other health", outcome.health),
            ("left out", outcome.left_out),
        ):
            if named.total:
                parts.append(f"{named.total} {words}")
        if outcome.altered:
            parts.append(f"{outcome.altered} altered")
        if outcome.held:
            parts.append("a removal is held until it is confirmed")
        return f"{outcome.service.within(self._namespace)}: {', '.join(parts) or 'other ports'}"

    def _keys(self, outcome: Outcome) -> dict[str, object]:
        named = {
            "added": outcome.added,
            "removed": outcome.removed,
            "health": outcome.health,
            "left_out": outcome.left_out,
        }
        return {
            "service": outcome.service.within(self._namespace),
            "source": outcome.source or "route-files",
            **{key: list(value.names) for key, value in named.items() if value.total},
        }

    def _summary(self, outcomes: Sequence[Outcome]) -> None:
        self._log.info(
            "endpoints changed in many services",
            services=len(outcomes),
            source=", ".join(sorted({outcome.source for outcome in outcomes if outcome.source})),
            added=_total(outcome.added for outcome in outcomes),
            removed=_total(outcome.removed for outcome in outcomes),
            left_out=_total(outcome.left_out for outcome in outcomes),
            held=sum(outcome.held for outcome in outcomes),
        )


def _total(each: Iterable[Named]) -> int:
    return sum(named.total for named in each)
