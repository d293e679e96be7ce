"""A status report for people: tables on a terminal, plain columns anywhere else."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from swashplate.output import counted
from swashplate.outside_text import escaped
from swashplate.status import (
    NackReport,
    ProblemReport,
    ProxyReport,
    ServerReport,
    SourceReport,
    StatusReport,
    TypeReport,
    WarningReport,
)
from swashplate.text_table import age, columns
from swashplate.traffic_text import MOST, failure_table, load_table

_STYLES = {
    "synced": "green",
    "fresh": "green",
    "ready": "green",
    "stale": "yellow",
    "draining": "yellow",
    "waiting": "yellow",
    "not sent": "dim",
    "nacked": "bold red",
    "not ready": "bold red",
}
_WIDEST = 10_000
_NAMED = 10

_TYPES = ("CDS", "EDS", "LDS", "RDS", "VHDS", "RTDS")


def show(
    report: StatusReport,
    now: datetime,
    out: IO[str],
    *,
    node: str | None = None,
    all_load: bool = False,
    failures: bool = False,
) -> None:
    """Print all of `report`, or the proxies of one node in detail; in colour where `out` is a terminal.

    Of load only the busiest clusters, or all; failures where asked for.
    """
    # As wide as it needs: what is cut off, or wrapped inside a column, can be neither searched nor piped.
    console = Console(file=out, width=_WIDEST, highlight=False, markup=False, emoji=False)
    # All of it at once: much of it was written by whoever reaches a port of the server.
    report = _harmless(report if node is None else report.of_node(node))
    if node is not None:
        parts: list[RenderableType] = [_node(proxy, now) for proxy in report.proxies]
    else:
        parts = [_servers(report, now), _sources(report, now)]
        if _of_discovery(report):
            parts.append(_proxies(report.proxies))
        if report.loads or all_load:
            parts.append(load_table(report.loads, None if all_load else MOST))
        if failures:
            parts.append(failure_table(report.failures, now))
    parts += [_nack(proxy, part, part.nack, now) for proxy, part in _nacks(report)]
    if node is None:
        parts += list(_problems(report.problems))
        if report.warnings:
            parts.append(Group(*map(_warning, report.warnings)))
    with console.capture() as printed:
        for number, part in enumerate(parts):
            if number:
                console.print()
            console.print(part)
    # Tables fill their last column up with spaces.
    out.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))


def _harmless(report: StatusReport) -> StatusReport:
    """The same for a terminal; of its texts only those of problems have more than one line."""
    made = StatusReport.model_validate(_each_escaped(report.model_dump()))
    texts = (escaped(problem.text, lines=True) for problem in report.problems)
    problems = (problem.model_copy(update={"text": text}) for problem, text in zip(made.problems, texts, strict=True))
    return made.model_copy(update={"problems": tuple(problems)})


def _each_escaped(data: Any) -> Any:
    if isinstance(data, str):
        return escaped(data)
    if isinstance(data, dict):
        return {key: _each_escaped(value) for key, value in data.items()}
    return tuple(map(_each_escaped, data)) if isinstance(data, list | tuple) else data


def _of_discovery(report: StatusReport) -> bool:
    """Whether any of the servers has proxies: what answers limits alone never has."""
    return not report.servers or any(server.has_proxies for server in report.servers)


def _state(state: str) -> Text:
    return Text("NACKed" if state == "nacked" else state, style=_STYLES[state])


def _servers(report: StatusReport, now: datetime) -> RenderableType:
    table = columns("SERVER", "VERSION", "ADS" if _of_discovery(report) else "GRPC", "UP", "STATE", "")
    for server in report.servers:
        state = _state("ready" if server.ready else "not ready")
        reasons = "; ".join(_not_ready(server, report.sources))
        table.add_row(server.identifier, server.version, server.listen, age(server.started_at, now), state, reasons)
    return table


def _not_ready(server: ServerReport, sources: Iterable[SourceReport]) -> Iterator[str]:
    """Its reasons; of a source whose error stands below its table, the name alone."""
    told = {f"{one.name}: {one.error}": one.name for one in sources if one.error and one.server == server.identifier}
    for reason in server.reasons:
        yield f"no answer from {told[reason]}" if reason in told else reason


def _sources(report: StatusReport, now: datetime) -> RenderableType:
    with_endpoints = any(source.endpoints or source.left_out for source in report.sources)
    more = ("ENDPOINTS",) if with_endpoints else ()
    table = columns("SOURCE", "AT", "STATE", "SERVICES" if _of_discovery(report) else "DOMAINS", *more, "READ", "")
    for source in report.sources:
        facts = [f"stale for {age(source.stale_since, now)}"] if source.stale_since else []
        facts += [f"{len(source.held)} held"] if source.held else []
        facts += _in_error(source, report.problems)
        if source.left_out:
            counts = ", ".join(f"{count} {reason}" for reason, count in source.left_out.items())
            facts.append(f"not used: {counts}")
        table.add_row(
            Text(source.name),
            Text(source.place),
            _state(source.state),
            "-" if source.kind in ("counters", "asked") else str(source.services),
            *((str(source.endpoints) if source.kind == "services" else "-",) if with_endpoints else ()),
            _read(source, now),
            Text("; ".join(facts)),
        )
    # What several servers say alike comes once.
    lines = dict.fromkeys(line for source in report.sources for line in _sentences(source))
    return Group(table, *(Text(line, style=style) for line, style in lines))


def _sentences(source: SourceReport) -> Iterator[tuple[str, str]]:
    """What is too long for a column, below the table; each with its style."""
    if source.error:
        unknown = "; nothing of it is known yet" if source.state == "waiting" else ""
        yield f"{source.name}: {source.error}{unknown}", "red"
    if source.held:
        yield f"{source.name}: {_how_held(source)}: {_some(source.held)}", "yellow"
    for note in source.notes:
        yield f"{source.name}: note: {note}", "yellow"


def _read(source: SourceReport, now: datetime) -> str:
    """When it last answered; before its first answer, when what an earlier life saved was good."""
    if source.last_sync is not None:
        return f"{age(source.last_sync, now)} ago"
    return f"saved {age(source.stored_at, now)} ago" if source.stored_at is not None else "never"


def _how_held(source: SourceReport) -> str:
    """No command that removes services while their source cannot be heard: they may be there."""
    if source.kind == "services" and source.error:
        return "removal held, as it may be an error's"
    return f"removal held until confirmed (`swashplate confirm {source.name}`)"


def _in_error(source: SourceReport, problems: Iterable[ProblemReport]) -> list[str]:
    """How many of its files are in error, and what serves on meanwhile."""
    place = source.place.rstrip("/")
    files = {
        problem.file: problem
        for problem in problems
        if problem.severity == "error"
        and problem.server == source.server
        and (problem.file == place or problem.file.startswith(f"{place}/"))
    }
    if not files:
        return []
    noted = [counted(len(files), "file") + " in error"]
    if len(files) == 1:
        noted += [_standing(problem) for problem in files.values() if problem.in_force]
    elif all(problem.in_force == "last good" for problem in files.values()):
        noted.append("their last good versions serve on")
    return noted


def _standing(problem: ProblemReport) -> str:
    """What of the file with this error is in force."""
    if problem.in_force == "rest":
        return "the rest of it is in force"
    if problem.in_force == "nothing":
        return f"no good version of it is known: {problem.outcome or 'nothing of it is in force'}"
    if problem.in_force_since is None:
        return "the version from before the restart serves on"
    return f"the version of {problem.in_force_since.astimezone():%H:%M:%S} serves on"


def _problems(problems: tuple[ProblemReport, ...]) -> Iterator[Text]:
    """Each with its place; under the last error of a file, what of the file is in force."""
    errors = [(number, problem) for number, problem in enumerate(problems) if problem.severity == "error"]
    last = {(problem.server, problem.file): number for number, problem in errors}
    for number, problem in enumerate(problems):
        stands = problem.in_force and last.get((problem.server, problem.file)) == number
        yield Text(problem.text + (f"\n  meanwhile: {_standing(problem)}" if stands else ""))


def _proxies(proxies: tuple[ProxyReport, ...]) -> RenderableType:
    if not proxies:
        return Text("No proxy is connected.")
    seen = {part.type for proxy in proxies for part in proxy.types}
    shown = [name for name in _TYPES if name in seen] + sorted(seen.difference(_TYPES))
    table = columns("PROXY", "CLUSTER", "CLIENT", "ADS", *shown, "SERVER")
    for proxy in proxies:
        states = {part.type: _state(part.state) for part in proxy.types}
        table.add_row(
            Text(proxy.node),
            Text(proxy.cluster),
            Text(proxy.user_agent),
            proxy.variant,
            *(states.get(name, Text("-")) for name in shown),
            Text(proxy.server),
        )
    return table


def _node(proxy: ProxyReport, now: datetime) -> Group:
    title = Text(
        f"{proxy.node} ({proxy.cluster}), {proxy.user_agent}, {proxy.variant}, from {proxy.peer}, "
        f"connected to {proxy.server} for {age(proxy.connected_at, now)}"
    )
    table = columns("TYPE", "STATE", "RESOURCES", "SENT", "ACKED", "LAST SENT")
    for part in proxy.types:
        sent = f"{age(part.sent_at, now)} ago" if part.sent_at else "never"
        resources = f"{part.resources} (+{part.draining})" if part.draining else str(part.resources)
        table.add_row(part.type, _state(part.state), resources, part.sent_version, part.acked_version, sent)
    return Group(title, table, *map(Text, _steps(proxy, now)))


def _steps(proxy: ProxyReport, now: datetime) -> Iterator[str]:
    """What is still under way at a proxy, and what it waits for."""
    for wait in proxy.rollout.waiting:
        what = f"{wait.type} has been waiting for {age(wait.since, now)}"
        if wait.clusters:
            yield f"{what}, until these clusters are ready: {_some(wait.clusters)}"
        else:
            yield f"{what}, until the proxy asks for its clusters"
    for part in proxy.types:
        if part.unanswered_since is not None:
            yield f"{part.type} sent {age(part.unanswered_since, now)} ago is not acknowledged yet"
        if part.suspects:
            yield f"{part.type}: looking for what it refused, among {part.suspects} resources"
        if part.quarantined:
            yield f"{part.type}: kept back, because it refused them: {_some(part.quarantined)}"
    for gone in proxy.rollout.lingering:
        until = f"for {age(now, gone.until)} more" if gone.until else "as long as its routes may refer to it"
        yield f"cluster {gone.cluster} is gone and stays {until}"


def _some(names: tuple[str, ...]) -> str:
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _nacks(report: StatusReport) -> Iterable[tuple[ProxyReport, TypeReport]]:
    return ((proxy, part) for proxy in report.proxies for part in proxy.types if part.nack)


def _nack(proxy: ProxyReport, part: TypeReport, nack: NackReport | None, now: datetime) -> Text:
    assert nack is not None
    return Text(f"{proxy.node} refused {part.type} {age(nack.at, now)} ago: {nack.message}", style="red")


def _warning(warning: WarningReport) -> Text:
    return Text(f"warning {warning.code}: {warning.service}: {warning.reason}", style="yellow")
