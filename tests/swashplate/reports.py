"""Status reports for tests: healthy ones, and parts that are not."""

from datetime import UTC, datetime

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

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def a_type(name: str = "CDS", state: str = "synced", nack: NackReport | None = None) -> TypeReport:
    return TypeReport.model_validate(
        {
            "type": name,
            "state": state,
            "resources": 2,
            "sent_version": "v2",
            "acked_version": "v2" if state == "synced" else "v1",
            "sent_at": NOW,
            "nack": nack,
        }
    )


def a_proxy(node: str = "web-1", *types: TypeReport, server: str = "s1", variant: str = "delta") -> ProxyReport:
    return ProxyReport.model_validate(
        {
            "server": server,
            "node": node,
            "cluster": "web",
            "user_agent": "envoy 1.40.0",
            "variant": variant,
            "peer": "ipv4:127.0.0.1:4",
            "connected_at": NOW,
            "types": types or (a_type(),),
        }
    )


def a_report(server: str = "s1", *, ready: bool = True, pending: bool = False, **parts: object) -> StatusReport:
    """A healthy server, but for `parts`."""
    return StatusReport.model_validate(
        {
            "servers": (
                ServerReport(
                    identifier=server,
                    version="1.2.3",
                    listen="127.0.0.1:18000",
                    started_at=NOW,
                    ready=ready,
                    reasons=() if ready else ("waiting for services",),
                    pending=pending,
                ),
            ),
            "sources": (a_source(server=server),),
            "problems": (),
            "warnings": (),
            "proxies": (a_proxy(server=server),),
            **parts,
        }
    )


def a_source(server: str = "s1", **parts: object) -> SourceReport:
    return SourceReport.model_validate(
        {
            "server": server,
            "name": "service-files",
            "kind": "services",
            "place": "/etc/services.yaml",
            "state": "fresh",
            "services": 3,
            "last_sync": NOW,
            "stale_since": None,
            "error": None,
            "held": (),
            **parts,
        }
    )


def a_problem(severity: str = "error", file: str = "routes/checkout.yaml", **parts: object) -> ProblemReport:
    return ProblemReport.model_validate(
        {
            **parts,
            "server": "s1",
            "severity": severity,
            "code": "R012",
            "message": "sum is 95",
            "file": file,
            "line": 9,
            "column": 7,
            "fix": None,
            "text": f"{file}:9:7: {severity} R012: sum is 95",
        }
    )


def a_warning(reason: str = "it gets no virtual host") -> WarningReport:
    return WarningReport(service="web.default", code="udp-port", reason=reason)


def a_nack(message: str = "duplicate domain") -> NackReport:
    return NackReport(message=message, version="v2", resources=("egress",), at=NOW)
