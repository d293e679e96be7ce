"""Explanations for people."""

import re
from collections.abc import Iterable, Iterator
from typing import IO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from discovery.outcome import place
from swashplate.explain.reports import (
    DestinationReport,
    EndpointReport,
    RouteReport,
    SeenReport,
    ServiceReport,
    TriedReport,
)
from swashplate.explain.route import shown
from swashplate.outside_text import escaped
from swashplate.text_table import columns

_WIDEST = 10_000
_NAMED = 5
_LAST_RESORT = ("draining", "unhealthy", "degraded")


def show(parts: Iterable[RenderableType], out: IO[str]) -> None:
    """Print them, one below the other; in colour where `out` is a terminal."""
    console = Console(file=out, width=_WIDEST, highlight=False, markup=False, emoji=False)
    with console.capture() as printed:
        for part in parts:
            console.print(part)
    out.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))


def of_route(report: RouteReport) -> Iterator[RenderableType]:
    """The answer first, then how it comes about."""
    who = f"{report.node} (cluster {report.node_cluster or 'unknown'})" if report.node else "a node of no service"
    yield _text(f"{report.request}, from {who}")
    yield _text(f"  {report.answer}", style="bold red" if (report.status or 0) >= 400 else "bold")
    if report.service:
        port = f", port {report.port}" if report.port else ""
        source = f", {report.source}" if report.source else ""
        yield _text(f"  host: {report.domain} is {report.service}{port} ({report.protocol}){source}")
    for tried in report.tried:
        yield from _tried(tried)
    for words, destinations in (("to", report.destinations), ("copies to", report.mirrors)):
        if destinations:
            yield _destinations(words, destinations)
            yield from _left_out(destinations)
    for line in report.details:
        yield _text(f"  {line}")
    for line in report.notes:
        yield _text(f"  note: {line}", style="yellow")


def _tried(tried: TriedReport) -> Iterator[Text]:
    place = f" ({tried.place})" if tried.place else ""
    if tried.taken:
        yield _text(f"  rule {tried.rule}{place}: takes it", style="green")
    else:
        yield _text(f"  rule {tried.rule}{place}: no; {'; or '.join(tried.reasons)}", style="dim")


def _destinations(words: str, destinations: Iterable[DestinationReport]) -> Table:
    several = ("SOURCES",) if any(one.sources for one in destinations) else ()
    table = columns(f"  {words.upper()}", "SHARE", "CLUSTER", "ENDPOINTS", "HEALTH", "ZONES", *several)
    for one in destinations:
        table.add_row(
            _text(f"  {one.to}"),
            shown(one.percent),
            _text(one.cluster),
            Text(str(one.endpoints), style="" if one.endpoints else "red"),
            _text(_counts(one.health)),
            _text(_counts(one.zones)),
            *((_text(_parts(one.sources) or "-"),) if several else ()),
        )
    return table


def _left_out(destinations: Iterable[DestinationReport]) -> Iterator[Text]:
    """Once for each instance, though several destinations may lack it."""
    lines = dict.fromkeys(line for one in destinations for line in one.left_out)
    for line in tuple(lines)[:_NAMED]:
        yield _text(f"  left out: {line}", style="yellow")
    if len(lines) > _NAMED:
        yield _text(f"  and {len(lines) - _NAMED} more: `swashplate explain service NAME` lists all", style="yellow")


def _parts(sources: dict[str, float]) -> str:
    """`consul 90%, kubernetes 10%`."""
    return ", ".join(f"{source} {shown(part)}" for source, part in sources.items())


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "-"


def of_endpoint(report: EndpointReport) -> Iterator[RenderableType]:
    """Every match; where there is none, what is watched and what to check."""
    if not report.seen:
        yield _text(f"{report.asked}: no source has such an instance", style="bold red")
        for line in report.watched:
            yield _text(f"  watched: {line}")
        for line in report.advice:
            yield _text(f"  check: {line}", style="yellow")
    for one in report.seen:
        yield from _seen(one)


def _seen(one: SeenReport) -> Iterator[Text]:
    where = f"[{one.address}]" if ":" in one.address else one.address
    place = f"{where}:{one.port}" if one.port else where
    name = f"{place} ({one.instance})" if one.instance and place else one.instance or place
    service = f"{one.service}:{one.service_port}" if one.service_port else one.service
    if one.used:
        yield _text(f"{name}: used for {service}, from {one.source}", style="green")
    else:
        yield _text(f"{name}: not used for {service}, from {one.source}: {one.reason}", style="bold red")
    if one.detail:
        yield _text(f"  {one.detail}")
    if one.used and one.health in _LAST_RESORT:
        yield _text(f"  {one.health}: it gets new requests only where nothing beside it is better", style="yellow")
    if one.used:
        weight = f"weight {one.weight}" if one.weight == one.given else f"weight {one.weight}, given {one.given}"
        if one.source_share is not None:
            weight += f", so that {one.source} gets {shown(one.source_share)} of the requests"
        facts = [
            one.health,
            weight,
            f"zone {one.zone}" if one.zone else "",
            f"on {one.machine}" if one.machine else "",
        ]
        yield _text(f"  {', '.join(fact for fact in facts if fact)}")
    if one.labels:
        yield _text(f"  labels: {', '.join(f'{key}={value}' for key, value in one.labels.items())}")
    if one.held:
        yield _text(f"  {one.source} takes something of this service away; held until confirmed", style="yellow")


def of_service(report: ServiceReport) -> Iterator[RenderableType]:
    """A line of what there is, and a table of the instances."""
    out = len(report.instances) + report.more - report.used
    if report.asked and not (report.known or report.instances):
        yield _text(f"{report.asked}: no source has such a service", style="bold red")
        yield from (_text(f"  {line}", style="yellow") for line in report.advice)
        return
    if report.asked:
        parts = f"; {_parts(report.sources)} of the requests" if report.sources else ""
        yield _text(f"{report.asked}: {report.used} used, {out} left out{parts}")
    else:
        yield _text(f"{out} left out of all services")
    if report.instances:
        yield _instances(report.instances, with_service=not report.asked)
    if report.more:
        yield _text(f"and {report.more} more, which are not listed")


def _instances(instances: Iterable[SeenReport], *, with_service: bool) -> Table:
    service = ("SERVICE",) if with_service else ()
    table = columns(*service, "INSTANCE", "ADDRESS", "SOURCE", "PORT", "STATE", "WEIGHT", "")
    for one in instances:
        labels = ", ".join(f"{key}={value}" for key, value in one.labels.items())
        table.add_row(
            *((_text(one.service),) if with_service else ()),
            _text(one.instance or "-"),
            _text(place(one.address, one.port) or "-"),
            _text(one.source),
            str(one.service_port or "-"),
            Text(escaped(one.health if one.used else one.reason), style="" if one.used else "red"),
            (str(one.weight) if one.weight == one.given else f"{one.weight} ({one.given})") if one.used else "-",
            _text("; ".join(filter(None, (one.detail, labels)))),
        )
    return table


def _text(text: str, style: str = "") -> Text:
    return Text(escaped(text), style=style)
