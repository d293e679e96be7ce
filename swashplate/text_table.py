"""What the tables that people are shown have in common."""

from datetime import datetime

from rich.table import Table


def columns(*headings: str) -> Table:
    """An empty table whose cells are neither cut off nor wrapped."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        made.add_column(heading, no_wrap=True, overflow="ignore")
    return made


def age(then: datetime, now: datetime) -> str:
    """How long ago `then` was: `3s`, `5m`, `2h10m`, `4d`."""
    return span((now - then).total_seconds())


def span(seconds: float) -> str:
    """So many seconds, in the same form."""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    if seconds < 86400:
        return f"{seconds // 3600}h{seconds % 3600 // 60}m"
    return f"{seconds // 86400}d"
