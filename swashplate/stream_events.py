"""What happens on streams, into metrics and logs."""

from structlog.typing import FilteringBoundLogger

from swashplate.envoy_words import plain
from swashplate.metrics import Metrics
from xds.host import clock
from xds.resources.types import SHORT
from xds.streams.census import known_type
from xds.streams.convergence import Convergence
from xds.streams.events import (
    Acked,
    Changed,
    Closed,
    Event,
    Failed,
    Identified,
    Nacked,
    Pushed,
    Refused,
    Waited,
)


class _OfType:
    """The series of one type, looked up once."""

    def __init__(self, metrics: Metrics, type_url: str) -> None:
        name = self.name = SHORT.get(type_url, type_url)
        self.pushes = metrics.pushes.labels(name)
        self.push_bytes = metrics.push_bytes.labels(name)
        self.acks = metrics.acks.labels(name)
        self.nacks = metrics.nacks.labels(name)
        self.change_to_ack = metrics.change_to_ack.labels(name)
        self.convergence = metrics.convergence.labels(name)
        self.gate_wait = metrics.gate_wait.labels(name)


class StreamEvents:
    """Called with each event. What every proxy does on every push is a debug line; a refusal is a warning."""

    def __init__(self, metrics: Metrics, log: FilteringBoundLogger) -> None:
        self._metrics = metrics
        # Bound here, not at each of some thousand lines a second that nobody wants to see.
        self._log: FilteringBoundLogger = log.bind()
        self._types: dict[str, _OfType] = {}
        self._convergence = Convergence()

    def __call__(self, event: Event) -> None:
        match event:
            case Identified():
                self._identified(event)
            case Pushed():
                self._pushed(event)
            case Acked():
                self._acked(event)
            case Nacked():
                self._nacked(event)
            case Closed():
                self._closed(event)
            case Waited():
                self._of(event.type_url).gate_wait.observe(event.seconds)
            case Changed():
                now = clock.now()
                self.settle(now)
                self._convergence.began(event.origin, now)
            case Refused():
                self._metrics.streams_refused.inc()
                self._log.debug("stream turned away", peer=event.peer)
            case Failed():
                node = event.node.id if event.node else None
                self._log.error("a stream failed and was ended", node=node, exc_info=event.error)

    def has_pushed(self, type_url: str) -> bool:
        """Whether anybody has taken anything of a type since the start."""
        return type_url in self._types

    def settle(self, now: float) -> None:
        """Note what changes have reached everybody by now, in unix seconds."""
        for arrival in self._convergence.arrived(now):
            self._of(arrival.type_url).convergence.observe(arrival.seconds)

    def _of(self, type_url: str) -> _OfType:
        if (found := self._types.get(type_url)) is None:
            known = known_type(type_url)
            found = self._types.setdefault(known, _OfType(self._metrics, known))
        return found

    def _identified(self, event: Identified) -> None:
        self._metrics.streams.labels(event.variant).inc()
        node = event.node
        self._log.info(
            "proxy connected",
            node=node.id,
            cluster=node.cluster,
            client=node.user_agent,
            variant=event.variant,
            peer=event.peer,
        )

    def _pushed(self, event: Pushed) -> None:
        of = self._of(event.type_url)
        of.pushes.inc()
        of.push_bytes.inc(event.size)
        self._convergence.pushed(event.type_url, event.origin, clock.now())
        self._log.debug(
            "pushed",
            node=event.node.id,
            type=of.name,
            version=event.version,
            changed=event.changed,
            removed=event.removed,
            bytes=event.size,
        )

    def _acked(self, event: Acked) -> None:
        of = self._of(event.type_url)
        of.acks.inc()
        of.change_to_ack.observe(event.since_change)
        self._convergence.taken(event.type_url, event.origins, clock.now())
        self._log.debug(
            "acknowledged", node=event.node.id, type=of.name, version=event.version, seconds=round(event.seconds, 6)
        )

    def _nacked(self, event: Nacked) -> None:
        of = self._of(event.type_url)
        of.nacks.inc()
        self._convergence.lost(event.type_url, event.origins)
        self._log.warning(
            "proxy refused its configuration and keeps the one before",
            node=event.node.id,
            type=of.name,
            version=event.nack.version,
            reason=plain(event.nack.message),
            culprits=event.culprits[:10],
            resources=event.nack.resources[:10],
        )

    def _closed(self, event: Closed) -> None:
        self._metrics.stream_length.labels(event.reason.partition(":")[0]).observe(event.seconds)
        for type_url, origin in event.unanswered:
            self._convergence.lost(type_url, (origin,))
        self._log.info(
            "proxy disconnected",
            node=event.node.id if event.node else None,
            seconds=round(event.seconds, 3),
            reason=event.reason,
        )
