"""A valid route file's model to `mesh` values. Everything here was checked before; nothing here refuses."""

import json
from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction

from mesh import match as m
from mesh import policy as p
from mesh import rule as r
from mesh.rate_limit import RateLimit
from mesh.service import Labels, Protocol, ServiceName
from mesh.split import Destination, ServiceRef, Share, Split, SubsetRef
from routes.model.action import (
    CorsSpec,
    FaultSpec,
    HeaderEditsSpec,
    RedirectSpec,
    RegexReplace,
    RetrySpec,
    RewriteSpec,
    StickySpec,
)
from routes.model.file import PatchSpec, RouteFile
from routes.model.match import MatchSpec, PatternSpec
from routes.model.policy import ClusterSpec, HealthCheckSpec
from routes.model.rule import DefaultsSpec, RuleSpec
from routes.rate_limits import ALL_RULES, rate_limits

DEFAULT_RULE = "default"
"""The name of the rule that a file without rules has."""

_NO_CLUSTER = ClusterSpec.model_validate({})
_NO_DEFAULTS = DefaultsSpec.model_validate({})
_NO_RULE = RuleSpec.model_validate({})


class Naming:
    """What destinations mean in one file: its own subsets first, then services."""

    def __init__(self, service: ServiceName, port: int | str | None, subsets: Iterable[str]) -> None:
        self.service = service
        self.port = port
        self.subsets = frozenset(subsets)

    def destination(self, text: str) -> Destination:
        """A subset, else `name` in the file's own namespace or `name.namespace`, either with `:port`.

        The last label after a dot is the namespace. The file's own service without a port means the file's port.
        """
        if text in self.subsets:
            return SubsetRef(text)
        full, _, port_text = text.partition(":")
        name, dot, namespace = full.rpartition(".")
        service = ServiceName(namespace, name) if dot else ServiceName(self.service.namespace, full)
        port = (int(port_text) if port_text.isdigit() else port_text) if port_text else None
        if port is None and service == self.service:
            port = self.port
        return ServiceRef(service, port)


def service_routes(file: RouteFile, service: ServiceName, source: str) -> r.ServiceRoutes:
    """The whole file."""
    naming = Naming(service, file.port, file.subsets or ())
    cluster = file.cluster or _NO_CLUSTER
    return r.ServiceRoutes(
        service=service,
        port=file.port,
        hosts=tuple(file.hosts or ()),
        subsets=tuple(r.Subset(name, labels(wanted)) for name, wanted in (file.subsets or {}).items()),
        rules=rules(file, naming),
        policy=_policy(cluster),
        protocol=Protocol(cluster.protocol) if cluster.protocol else None,
        listen=file.listen,
        patches=tuple(_patch(patch, naming) for patch in file.patches or ()),
        sources=tuple(r.SourceShare(source, int(share * 100)) for source, share in (file.sources or {}).items()),
        source=source,
    )


def labels(wanted: dict[str, str]) -> Labels:
    return frozenset(wanted.items())


def rule_name(index: int, rule: RuleSpec) -> str:
    """The rule's own name, else one by its place, from 1."""
    return rule.name or f"rule-{index + 1}"


def rules(file: RouteFile, naming: Naming) -> tuple[r.Rule, ...]:
    defaults = file.defaults or _NO_DEFAULTS
    shared = rate_limits(file.rate_limits, ALL_RULES, naming.service)
    if not file.rules:
        everything = Split.all_to(ServiceRef(naming.service, naming.port))
        action = _forward(_NO_RULE, defaults, everything, naming)
        return (r.Rule(DEFAULT_RULE, action, cors=_cors(defaults.cors), rate_limits=shared),)
    return tuple(_rule(index, rule, defaults, naming, shared) for index, rule in enumerate(file.rules))


def _rule(
    index: int, rule: RuleSpec, defaults: DefaultsSpec, naming: Naming, shared: tuple[RateLimit, ...]
) -> r.Rule:
    headers, name = rule.headers, rule_name(index, rule)
    limits = (*shared, *rate_limits(rule.rate_limits, name, naming.service)) if rule.to is not None else ()
    return r.Rule(
        name=name,
        action=_action(rule, defaults, naming),
        matches=tuple(match(spec) for spec in rule.match or ()),
        request_headers=_header_edits(headers.request if headers else None),
        response_headers=_header_edits(headers.response if headers else None),
        fault=_fault(rule.fault),
        cors=_cors(rule.cors or defaults.cors),
        rate_limits=limits,
    )


def _action(rule: RuleSpec, defaults: DefaultsSpec, naming: Naming) -> r.Action:
    if rule.redirect is not None:
        return _redirect(rule.redirect)
    if rule.respond is not None:
        return r.Respond(rule.respond.status, rule.respond.body)
    assert rule.to is not None
    shares = {rule.to: Fraction(100)} if isinstance(rule.to, str) else rule.to
    split = Split(tuple(Share(naming.destination(to), int(share * 100)) for to, share in shares.items()))
    return _forward(rule, defaults, split, naming)


def _forward(rule: RuleSpec, defaults: DefaultsSpec, split: Split, naming: Naming) -> r.Forward:
    return r.Forward(
        split=split,
        sticky=sticky(rule.sticky),
        mirrors=tuple(r.Mirror(naming.destination(mirror.to), mirror.percent) for mirror in rule.mirror or ()),
        rewrite=_rewrite(rule.rewrite),
        timeout=rule.timeout or defaults.timeout,
        idle_timeout=rule.idle_timeout or defaults.idle_timeout,
        retry=_retry(rule.retry or defaults.retry),
        websocket=rule.websocket,
    )


def match(spec: MatchSpec) -> m.Match:
    """One entry of `match`."""
    path: m.PathMatch | None = None
    if spec.path is not None:
        path = m.PathExact(spec.path)
    elif spec.prefix is not None:
        path = m.PathPrefix(spec.prefix)
    elif spec.regex is not None:
        path = m.PathRegex(spec.regex)
    return m.Match(path, tuple(spec.methods or ()), _named(spec.headers), _named(spec.query), _named(spec.cookies))


def _named(patterns: dict[str, str | PatternSpec] | None) -> tuple[m.NamedMatch, ...]:
    return tuple(m.NamedMatch(name, pattern(value)) for name, value in (patterns or {}).items())


def pattern(spec: str | PatternSpec) -> m.ValueMatch:
    """What a value must look like; plain text is exact."""
    if isinstance(spec, str):
        return m.Exact(spec)
    if spec.prefix is not None:
        return m.Prefix(spec.prefix)
    if spec.suffix is not None:
        return m.Suffix(spec.suffix)
    if spec.regex is not None:
        return m.Regex(spec.regex)
    if spec.range is not None:
        return m.Range(*spec.range)
    if spec.exact is not None:
        return m.Exact(spec.exact)
    return m.Present() if spec.present else m.Absent()


def sticky(spec: StickySpec | None) -> r.Sticky | None:
    if spec is None:
        return None
    if spec.header is not None:
        return r.StickyHeader(spec.header)
    if spec.query is not None:
        return r.StickyQuery(spec.query)
    if spec.cookie is None:
        return r.StickyAddress()
    if isinstance(spec.cookie, str):
        return r.StickyCookie(spec.cookie)
    ttl = timedelta(0) if spec.cookie.ttl == "session" else spec.cookie.ttl
    return r.StickyCookie(spec.cookie.name, ttl, spec.cookie.path or "")


def _retry(spec: RetrySpec | None) -> r.Retry | None:
    if spec is None:
        return None
    return r.Retry(spec.attempts, tuple(str(word) for word in spec.on), spec.per_try, spec.budget)


def _regex(spec: RegexReplace | None) -> tuple[str, str] | None:
    return None if spec is None else (spec.pattern, spec.substitution)


def _rewrite(spec: RewriteSpec | None) -> r.Rewrite | None:
    if spec is None:
        return None
    return r.Rewrite(spec.prefix, spec.path, _regex(spec.regex), spec.host, spec.host_from_header)


def _redirect(spec: RedirectSpec) -> r.Redirect:
    return r.Redirect(
        spec.scheme, spec.host, spec.port, spec.path, spec.prefix, _regex(spec.regex), spec.code, spec.strip_query
    )


def _header_edits(spec: HeaderEditsSpec | None) -> r.HeaderEdits:
    if spec is None:
        return r.NO_HEADER_EDITS
    return r.HeaderEdits(tuple((spec.add or {}).items()), tuple((spec.set or {}).items()), tuple(spec.remove or ()))


def _fault(spec: FaultSpec | None) -> r.Fault | None:
    if spec is None:
        return None
    none = Fraction(0)
    delay_percent = none if spec.delay is None else spec.percent
    return r.Fault(spec.delay, delay_percent, spec.abort, none if spec.abort is None else spec.percent)


def _cors(spec: CorsSpec | None) -> r.Cors | None:
    if spec is None:
        return None
    return r.Cors(
        origins=tuple(pattern(origin) for origin in spec.origins),
        methods=tuple(spec.methods or ()),
        headers=tuple(spec.headers or ()),
        expose=tuple(spec.expose or ()),
        max_age=spec.max_age,
        credentials=spec.credentials,
    )


def _policy(spec: ClusterSpec) -> p.ClusterPolicy:
    breaker, outlier, locality = spec.circuit_breaker, spec.outlier, spec.locality
    return p.ClusterPolicy(
        lb=p.LoadBalancing(spec.lb),
        connect_timeout=spec.connect_timeout,
        idle_timeout=spec.idle_timeout,
        max_requests_per_connection=spec.max_requests_per_connection,
        circuit_breaker=p.CircuitBreaker(**dict(breaker)) if breaker else None,
        outlier=p.Outlier(**dict(outlier)) if outlier else None,
        health_check=_health_check(spec.health_check),
        tls=_tls(spec),
        locality=p.LocalityPolicy(**dict(locality)) if locality else None,
    )


def _health_check(spec: HealthCheckSpec | None) -> p.HealthCheck | None:
    return None if spec is None else p.HealthCheck(**dict(spec))


def _tls(spec: ClusterSpec) -> p.Tls | None:
    tls = spec.tls
    if tls is None or isinstance(tls, bool):
        return p.Tls() if tls else None
    return p.Tls(tls.sni, tls.ca, tls.cert, tls.key, tuple(tls.alpn or ()), tls.verify, tuple(tls.sans or ()))


def _patch(spec: PatchSpec, naming: Naming) -> r.Patch:
    merge = json.dumps(spec.merge, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if spec.cluster is not None:
        return r.Patch("cluster", spec.cluster if spec.cluster in naming.subsets else "", merge)
    if spec.route is not None:
        return r.Patch("route", spec.route, merge)
    return r.Patch("virtual_host" if spec.virtual_host else "listener", "", merge)
