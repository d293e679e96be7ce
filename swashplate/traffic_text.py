"""Load and failures of a status report, for people."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from swashplate.status import FailuresReport, LoadReport
from swashplate.text_table import age, columns

MOST: Final = 10
"""How many clusters are listed unless all are asked for."""


class _ClusterLoad(NamedTuple):
    """Sums over localities and servers; `nodes` is the most that any locality has."""

    requests: int
    errors: int
    dropped: int
    in_flight: int
    nodes: int
    seconds: float


def load_table(loads: Iterable[LoadReport], most: int | None) -> RenderableType:
    """The clusters with the most requests, all servers and localities together."""
    by_cluster: dict[str, list[LoadReport]] = defaultdict(list)
    for load in loads:
        by_cluster[load.cluster].append(load)
    if not by_cluster:
        return Text("No proxy has reported any load.")
    rows = {cluster: _sum(parts) for cluster, parts in by_cluster.items()}
    busiest = sorted(rows, key=lambda cluster: (-rows[cluster].requests, cluster))
    shown = columns("LOAD OF", "REQUESTS", "ERRORS", "DROPPED", "IN FLIGHT", "PROXIES", "OVER")
    for cluster in busiest[:most]:
        row = rows[cluster]
        errors = Text(str(row.errors), style="red" if row.errors else "")
        numbers = (str(row.dropped), str(row.in_flight), str(row.nodes), f"{row.seconds:.3g}s")
        shown.add_row(Text(cluster), str(row.requests), errors, *numbers)
    rest = len(busiest) - len(busiest[:most])
    return Group(shown, Text(f"and {rest} clusters with less: --load")) if rest else shown


def _sum(parts: list[LoadReport]) -> _ClusterLoad:
    nodes: dict[str, int] = defaultdict(int)
    for part in parts:
        nodes[part.server] = max(nodes[part.server], part.nodes)
    return _ClusterLoad(
        requests=sum(part.successes + part.errors for part in parts),
        errors=sum(part.errors for part in parts),
        dropped=sum(part.dropped for part in parts),
        in_flight=sum(part.in_flight for part in parts),
        nodes=sum(nodes.values()),
        seconds=max(part.seconds for part in parts),
    )


def failure_table(failures: Iterable[FailuresReport], now: datetime) -> RenderableType:
    """The most frequent failures, those of several servers together. `~` marks a count that may be too high."""
    reports = tuple(failures)
    if not reports:
        return Text("Failed requests are not counted: the setting top_errors is 0.")
    times: dict[str, int] = defaultdict(int)
    excess: dict[str, int] = defaultdict(int)
    for report in reports:
        for failure in report.top:
            times[failure.request] += failure.times
            excess[failure.request] += failure.excess
    title = Text(
        f"{sum(report.total for report in reports)} requests failed "
        f"in the last {age(min(report.since for report in reports), now)}"
    )
    shown: Table = columns("TIMES", "REQUEST")
    for request in sorted(times, key=lambda request: (-times[request], request)):
        shown.add_row(f"{'~' if excess[request] else ''}{times[request]}", Text(request))
    return Group(title, shown) if times else title
