"""What gRPC clients without a proxy cannot do of what operators want: said, where such clients are about."""

from collections.abc import Iterable, Iterator

from mesh.policy import ClusterPolicy
from mesh.rule import NO_HEADER_EDITS, Forward, Rule, StickyCookie, StickyQuery
from mesh.service import ServiceName
from xds.translate.finding import Code, Finding
from xds.translate.proxyless.retries import BY_ITSELF, call_statuses


def rule_findings(service: ServiceName, rules: Iterable[Rule]) -> Iterator[Finding]:
    """What of each rule calls go without."""
    for rule in rules:
        if not isinstance(rule.action, Forward):
            yield _finding(service, f"rule {rule.name}: gRPC calls without a proxy fail with UNAVAILABLE instead")
        elif missing := [*_of_rule(rule), *_of_forward(rule.action)]:
            reason = f"rule {rule.name}: gRPC clients without a proxy do without its {', '.join(missing)}"
            yield _finding(service, reason)


def _of_rule(rule: Rule) -> Iterator[str]:
    if (rule.request_headers, rule.response_headers) != (NO_HEADER_EDITS, NO_HEADER_EDITS):
        yield "headers"


def _of_forward(forward: Forward) -> Iterator[str]:
    split = sum(share.share > 0 for share in forward.split.shares) > 1
    if forward.sticky is not None and (split or isinstance(forward.sticky, StickyCookie | StickyQuery)):
        yield "sticky"
    if forward.mirrors:
        yield "mirror"
    if forward.rewrite is not None:
        yield "rewrite"
    if forward.retry is not None and forward.retry.attempts:
        if not BY_ITSELF.issuperset(forward.retry.on) and not call_statuses(forward.retry):
            yield "retry.on"
        if forward.retry.per_try is not None:
            yield "retry.per_try"


def policy_findings(service: ServiceName, policy: ClusterPolicy) -> Iterator[Finding]:
    """What of a cluster's policy they go without."""
    if policy.tls is not None:
        reason = "gRPC clients without a proxy speak TLS by their own credentials, not by the policy's"
        yield _finding(service, reason)
    missing = []
    if policy.health_check is not None:
        missing.append("health_check")
    locality = policy.locality
    if locality is not None and (locality.zone_aware or locality.failover):
        missing.append("locality")
    if missing:
        yield _finding(service, f"gRPC clients without a proxy do without its cluster's {', '.join(missing)}")


def _finding(service: ServiceName, reason: str) -> Finding:
    return Finding(service, Code.NOT_APPLICABLE, reason)
