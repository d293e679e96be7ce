"""What happens on streams, into metrics and logs."""

from structlog.typing import FilteringBoundLogger

from swashplate.metrics import Metrics
from xds.resources.types import SHORT
from xds.streams.events import Acked, Closed, Event, Failed, Identified, Nacked, Pushed, Refused


class StreamEvents:
    """Called with each event. What every proxy does on every push is a debug line; a refusal is a warning."""

    def __init__(self, metrics: Metrics, log: FilteringBoundLogger) -> None:
        self._metrics = metrics
        self._log = log

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
            case Refused():
                self._metrics.streams_refused.inc()
                self._log.debug("stream turned away", peer=event.peer)
            case Failed():
                node = event.node.id if event.node else None
                self._log.error("a stream failed and was ended", node=node, exc_info=event.error)

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
        name = SHORT.get(event.type_url, event.type_url)
        self._metrics.pushes.labels(name).inc()
        self._metrics.push_bytes.labels(name).inc(event.size)
        self._log.debug(
            "pushed",
            node=event.node.id,
            type=name,
            version=event.version,
            changed=event.changed,
            removed=event.removed,
            bytes=event.size,
        )

    def _acked(self, event: Acked) -> None:
        name = SHORT.get(event.type_url, event.type_url)
        self._metrics.acks.labels(name).inc()
        self._metrics.change_to_ack.labels(name).observe(event.since_change)
        self._log.debug(
            "acknowledged", node=event.node.id, type=name, version=event.version, seconds=round(event.seconds, 6)
        )

    def _nacked(self, event: Nacked) -> None:
        name = SHORT.get(event.type_url, event.type_url)
        self._metrics.nacks.labels(name).inc()
        self._log.warning(
            "proxy refused its configuration and keeps the one before",
            node=event.node.id,
            type=name,
            version=event.nack.version,
            reason=event.nack.message,
            culprits=event.culprits[:10],
            resources=event.nack.resources[:10],
        )

    def _closed(self, event: Closed) -> None:
        self._log.info(
            "proxy disconnected",
            node=event.node.id if event.node else None,
            seconds=round(event.seconds, 3),
            reason=event.reason,
        )
