"""The server's own state as a status report."""

from collections.abc import Iterable

from discovery.merge import Conflict
from mesh.service import ServiceName
from operator_files.problem import Problem
from operator_files.standing import Standing
from swashplate.envoy_words import plain
from swashplate.source_report import at
from swashplate.status import (
    LingerReport,
    NackReport,
    ProblemReport,
    ProxyReport,
    RolloutReport,
    TypeReport,
    WaitReport,
    WarningReport,
)
from xds.resources.types import SHORT
from xds.streams.status import ClientStatus, Nack, RolloutStatus, TypeStatus
from xds.translate.finding import Finding


def problem_report(
    server: str, problem: Problem, standing: Standing | None = None, outcome: str = ""
) -> ProblemReport:
    """`standing` is that of its file, where it has an error; `outcome` what clients get when nothing is in force."""
    return ProblemReport(
        server=server,
        severity="error" if problem.is_error else "warning",
        code=problem.code,
        message=problem.message,
        file=problem.file,
        line=problem.line or None,
        column=problem.column or None,
        fix=problem.fix or None,
        text=problem.render(),
        in_force=None if standing is None else standing.kind.value,
        in_force_since=None if standing is None or standing.since is None else at(standing.since),
        outcome=outcome or None,
    )


def warning_reports(
    findings: Iterable[Finding], conflicts: Iterable[tuple[ServiceName, Conflict]]
) -> tuple[WarningReport, ...]:
    """What translation could not grant, and what sources contradict each other about."""
    return (
        *(WarningReport(service=str(f.service), code=str(f.code), reason=f.reason) for f in findings),
        *(
            WarningReport(service=str(name), code="source-conflict", reason=_conflict(conflict))
            for name, conflict in conflicts
        ),
    )


def proxy_report(server: str, client: ClientStatus) -> ProxyReport:
    return ProxyReport(
        server=server,
        node=client.node_id,
        cluster=client.node_cluster,
        user_agent=client.user_agent,
        variant="delta" if client.variant == "delta" else "sotw",
        peer=client.peer,
        connected_at=at(client.connected_at),
        types=tuple(map(_type_report, client.types)),
        rollout=_rollout_report(client.rollout),
    )


def _type_report(status: TypeStatus) -> TypeReport:
    nack = status.nack
    return TypeReport(
        type=SHORT.get(status.type_url, status.type_url),
        state=status.state.value,
        resources=status.resources,
        sent_version=status.sent_version,
        acked_version=status.acked_version,
        sent_at=None if status.sent_at is None else at(status.sent_at),
        nack=None if nack is None else _nack_report(nack),
        draining=status.draining,
        unanswered_since=None if status.unanswered_since is None else at(status.unanswered_since),
        quarantined=status.quarantined,
        suspects=status.suspects,
    )


def _rollout_report(rollout: RolloutStatus) -> RolloutReport:
    return RolloutReport(
        waiting=tuple(
            WaitReport(type=SHORT.get(wait.type_url, wait.type_url), since=at(wait.since), clusters=wait.clusters)
            for wait in rollout.waiting
        ),
        lingering=tuple(
            LingerReport(cluster=gone.name, until=None if gone.until is None else at(gone.until))
            for gone in rollout.lingering
        ),
    )


def _nack_report(nack: Nack) -> NackReport:
    return NackReport(message=plain(nack.message), version=nack.version, resources=nack.resources, at=at(nack.at))


def _conflict(conflict: Conflict) -> str:
    return f"{conflict.reason}; what {conflict.winner} says stands, not what {conflict.loser} says"
