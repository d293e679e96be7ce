"""What becomes of a request at a node: which virtual host, which rule, and where the rule sends it.

Pure: made of the mesh that proxies have been told of, and of the node's view of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from discovery.explain import Witness
from mesh.caller import Caller
from mesh.mesh import Mesh
from mesh.rule import Forward, Redirect, Respond, Rule
from mesh.service import Health
from mesh.split import TOTAL, Destination
from swashplate.explain.hints import hints, hints_of_caller
from swashplate.explain.instances import left_out_lines, parts_of_sources, used_at
from swashplate.explain.matching import Verdict, habits_of, verdict
from swashplate.explain.policies import answered, details, redirected
from swashplate.explain.reports import DestinationReport, RouteReport, TriedReport
from swashplate.explain.request import Request
from swashplate.explain.takers import Place, Taker, of_caller, of_frontend, of_service
from swashplate.explain.wire import Wire, by_health, by_zone, host_for, virtual_hosts
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot

_GOOD: Final = (Health.HEALTHY, Health.DEGRADED)
_NONE: Final = "`no healthy upstream`"
NOBODY: Final = Witness((), {}, {})
"""No source has anything."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request of a node, and all that the answer is made of: the `view` is one with its virtual hosts in the table.

    `caller` is the one that the node is, if it has one's view; `namespace` is the default one. `witness` knows what
    sources have, used or not.
    """

    request: Request
    node: Node
    view: Snapshot
    mesh: Mesh
    caller: Caller | None
    namespace: str
    place: Place
    witness: Witness = NOBODY


def explain_route(question: Question) -> RouteReport:
    """The answer to it."""
    request, node = question.request, question.node
    wire = Wire(question.mesh, question.namespace)
    start = RouteReport(request=str(request), node=node.id, node_cluster=node.cluster, answer="")
    taker = _taker(question, wire)
    if taker is None:
        who = f"the node {node.id} (cluster {node.cluster or 'unknown'})" if node.id else "nodes of no service"
        answer = f"404: no service has the host {request.host} for {who}"
        caller = question.caller
        said = hints_of_caller(caller) if caller is not None else hints(request, question.view, wire)
        return _with(start, answer=answer, status=404, notes=tuple(said))
    start = _with(
        start,
        domain=taker.found.domain,
        virtual_host=taker.found.name,
        service=taker.service,
        port=taker.port,
        protocol=str(taker.protocol),
        source=taker.source,
        notes=taker.notes,
    )
    if taker.broken is not None:
        code, file = taker.broken.code, taker.broken.source
        answer = f"503 with the body {code}: {file} never had a good version; `swashplate status` says why"
        return _with(start, answer=answer, status=503, body=code)
    return _by_rules(question, taker, start)


def _taker(question: Question, wire: Wire) -> Taker | None:
    caller = question.caller
    found = host_for(question.request.host, virtual_hosts(question.view))
    if caller is None:
        return of_service(found, wire, question.place) if found is not None else None
    mine = of_caller(found, caller, wire) if found is not None else None
    return mine or of_frontend(caller, question.request.host.rpartition(":")[2], wire)


def _by_rules(question: Question, taker: Taker, start: RouteReport) -> RouteReport:
    habits = habits_of(question.node.version)
    tried: list[TriedReport] = []
    for index, rule in enumerate(taker.rules):
        said = verdict(rule, question.request, habits)
        place = taker.place(index)
        responds = said.taken and not isinstance(rule.action, Forward)
        tried.append(
            TriedReport(rule=rule.name, place=place, taken=said.taken, reasons=said.reasons, responds=responds)
        )
        if said.taken:
            notes = (*start.notes, *_notes(taker, rule, said))
            return _taken(question, taker, rule, _with(start, tried=tuple(tried), notes=notes))
    answer = "404: no rule takes the request, and there is none that takes everything"
    return _with(start, answer=answer, status=404, tried=tuple(tried))


def _notes(taker: Taker, rule: Rule, said: Verdict) -> Iterable[str]:
    if said.as_preflight:
        yield "a CORS preflight of requests that the rule takes: Envoy answers it itself, where the origin may ask"
    if taker.patched & {"", rule.name}:
        yield "a patch of the route file changes this route further; `swashplate render` has the outcome"


def _taken(question: Question, taker: Taker, rule: Rule, report: RouteReport) -> RouteReport:
    report = _with(report, details=tuple(details(rule, taker.protocol)))
    match rule.action:
        case Redirect() as redirect:
            return _with(report, answer=redirected(redirect), status=redirect.code)
        case Respond() as respond:
            return _with(report, answer=answered(respond), status=respond.status, body=respond.body)
        case Forward() as forward:
            shares = [(share.to, share.share * 100 / TOTAL) for share in forward.split.shares]
            destinations = tuple(_destination(question, taker, to, part) for to, part in shares)
            copies = ((mirror.to, float(mirror.percent)) for mirror in forward.mirrors)
            mirrors = tuple(_destination(question, taker, to, part) for to, part in copies)
            answer = forwarded(destinations)
            status = 503 if answer.startswith("503") else None
            return _with(report, answer=answer, status=status, destinations=destinations, mirrors=mirrors)


def _destination(question: Question, taker: Taker, to: Destination, percent: float) -> DestinationReport:
    behind = taker.behind(to)
    seen = question.witness.seen(behind.service)
    parts = parts_of_sources(used_at(seen, {(one.address, one.port) for one in behind.endpoints}))
    several = len({one.source for one in seen}) > 1
    return DestinationReport(
        to=behind.said,
        percent=percent,
        cluster=behind.cluster,
        endpoints=len(behind.endpoints),
        health=dict(by_health(behind.endpoints)),
        zones=dict(by_zone(behind.endpoints)),
        sources=dict(parts) if several else {},
        left_out=() if behind.endpoints else left_out_lines(seen),
    )


def forwarded(destinations: Iterable[DestinationReport]) -> str:
    """What callers get of a split, in one sentence."""
    live = [one for one in destinations if one.percent > 0]
    empty = [one for one in live if not one.endpoints]
    if empty and len(empty) == len(live):
        return f"503 {_NONE}: there is no endpoint in {_clusters(empty)}"
    if len(live) == 1:
        where = f"forwarded to {live[0].to}"
    else:
        where = "forwarded by split: " + ", ".join(f"{shown(one.percent)} to {one.to}" for one in live)
    if empty:
        part = shown(sum(one.percent for one in empty))
        return f"{where}; {part} get 503 {_NONE}: there is no endpoint in {_clusters(empty)}"
    if poor := [one for one in live if not any(one.health.get(str(health)) for health in _GOOD)]:
        return (
            f"{where}; no endpoint is healthy in {_healths(poor)}: those that are not get the requests all the same"
        )
    return where


def _healths(destinations: Iterable[DestinationReport]) -> str:
    """`checkout/stable (2 draining)`."""
    return ", ".join(
        f"{one.cluster} ({', '.join(f'{count} {health}' for health, count in one.health.items())})"
        for one in destinations
    )


def _clusters(destinations: Iterable[DestinationReport]) -> str:
    return ", ".join(one.cluster for one in destinations)


def shown(percent: float) -> str:
    """`12.5%`."""
    return f"{percent:.2f}".rstrip("0").rstrip(".") + "%"


def _with(report: RouteReport, **changes: object) -> RouteReport:
    return report.model_copy(update=changes)
