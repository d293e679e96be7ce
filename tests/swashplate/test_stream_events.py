"""Stream events: each is counted, a refusal is a warning with the proxy's words, and nothing else is loud."""

import pytest
import structlog
from structlog.testing import capture_logs

from swashplate.metrics import Metrics
from swashplate.stream_events import StreamEvents
from xds.resources import types
from xds.resources.node import Node
from xds.streams.events import Acked, Closed, Event, Identified, Nacked, Pushed
from xds.streams.status import Nack

NODE = Node("web-1", "web", user_agent="envoy 1.40.0")


@pytest.mark.parametrize(
    ("event", "level", "metric"),
    [
        (Identified(NODE, "delta", "ipv4:1"), "info", 'swashplate_streams_total{variant="delta"} 1.0'),
        (Pushed(NODE, types.CLUSTER, "v", 1, 0, 500), "debug", 'swashplate_push_bytes_total{type="CDS"} 500.0'),
        (Pushed(NODE, types.CLUSTER, "v", 1, 0, 500), "debug", 'swashplate_pushes_total{type="CDS"} 1.0'),
        (Acked(NODE, types.ROUTE, "v", 0.1, 0.2), "debug", 'swashplate_acks_total{type="RDS"} 1.0'),
        (Acked(NODE, types.ROUTE, "v", 0.1, 0.2), "debug", 'swashplate_change_to_ack_seconds_sum{type="RDS"} 0.2'),
        (
            Nacked(NODE, types.ROUTE, Nack("duplicate domain", "v", ("egress",), 1.0), ("egress/web",)),
            "warning",
            'swashplate_nacks_total{type="RDS"} 1.0',
        ),
        (Closed(NODE, 5.0, "bye"), "info", ""),
        (Closed(None, 5.0, "bye"), "info", ""),
        (
            Pushed(NODE, "type.googleapis.com/other.Type", "v", 1, 0, 1),
            "debug",
            'swashplate_pushes_total{type="other"} 1.0',
        ),
    ],
)
def test_event(event: Event, level: str, metric: str) -> None:
    metrics = Metrics()
    with capture_logs() as lines:
        StreamEvents(metrics, structlog.get_logger())(event)
    assert [line["log_level"] for line in lines] == [level]
    assert metric in metrics.text().decode()
    if isinstance(event, Nacked):
        assert lines[0]["reason"] == "duplicate domain"
        assert lines[0]["node"] == "web-1"
        assert lines[0]["culprits"] == ("egress/web",)
