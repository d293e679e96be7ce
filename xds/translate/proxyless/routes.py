"""Routes for gRPC clients: of each port of a service a RouteConfiguration of its own."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from envoy_api import EnvoyMessage, encode, message, pack
from mesh.match import Match
from mesh.rule import Forward, Redirect, Respond, Retry, Rule, Sticky, StickyAddress, StickyHeader
from mesh.split import Destination
from xds.resources import types
from xds.resources.resource import Resource
from xds.translate.actions import ClusterNames, direct_response, fault_filter, redirect_action, weighted
from xds.translate.finding import Finding
from xds.translate.http_filters import FAULT
from xds.translate.naming import virtual_host_name
from xds.translate.ports import CalledPort
from xds.translate.proxyless.findings import rule_findings
from xds.translate.proxyless.matches import call_matches
from xds.translate.proxyless.retries import call_retry
from xds.translate.subject import Subject
from xds.translate.virtual_hosts import refusing_host

NO_ROUTE: Final = "no-route-for-calls"
"""The answer of a service none of whose rules can be about a gRPC call."""

_EVERY_CALL: Final = (Match(),)
_CHANNEL: Final = {"filter_state": {"key": "io.grpc.channel_id"}}
"""The hash policy that tells callers apart by their channel (gRFC A42)."""


def route_configurations(subject: Subject, findings: list[Finding]) -> Iterator[Resource]:
    """One for each HTTP port, under the name of the port's virtual host; its only host takes every authority.

    So it is the same for all callers, by whatever name they dial. Raises ValueError or TypeError for values that no
    message can hold.
    """
    for port in subject.ports:
        if not port.protocol.is_http:
            continue
        references: set[str] = set()
        host = _host(subject, port, references)
        yield _table(virtual_host_name(port.cluster), host, references)
        if subject.broken is None:
            findings.extend(rule_findings(subject.name, subject.rules(port)))


def route_configuration(name: str, rules: Iterable[Rule], names: ClusterNames, references: Iterable[str]) -> Resource:
    """A RouteConfiguration of these rules for every authority; `references` are the clusters that they name."""
    return _table(name, _of_rules(rules, names), references)


def _host(subject: Subject, port: CalledPort, references: set[str]) -> EnvoyMessage:
    if subject.broken is not None:
        return refusing_host(subject.broken.code)

    def cluster(to: Destination) -> str:
        references.add(name := subject.cluster_of(port, to))
        return name

    return _of_rules(subject.rules(port), cluster)


def _of_rules(rules: Iterable[Rule], names: ClusterNames) -> EnvoyMessage:
    routes = [route for rule in rules for route in _routes(rule, names)]
    if not routes:
        return refusing_host(NO_ROUTE)
    return message("envoy.config.route.v3.VirtualHost", routes=routes)


def _table(name: str, host: EnvoyMessage, references: Iterable[str]) -> Resource:
    host.name = name
    host.domains.append("*")
    table = message("envoy.config.route.v3.RouteConfiguration", name=name, virtual_hosts=[host])
    return Resource(types.ROUTE, name, encode(table), frozenset(references))


def _routes(rule: Rule, names: ClusterNames) -> Iterator[EnvoyMessage]:
    fixed: dict[str, Any] = {"name": rule.name}
    if rule.fault is not None:
        fixed["typed_per_filter_config"] = {FAULT: pack(fault_filter(rule.fault))}
    for match in rule.matches or _EVERY_CALL:
        for fields in call_matches(match):
            yield message("envoy.config.route.v3.Route", match=fields, **fixed, **_action(rule, match, names))


def _action(rule: Rule, taken: Match, names: ClusterNames) -> dict[str, Any]:
    """A call that is to be redirected or answered fails with UNAVAILABLE: a client can do neither (gRFC A28)."""
    match rule.action:
        case Forward() as forward:
            return {"route": _forward(forward, names)}
        case Redirect() as redirect:
            return {"redirect": redirect_action(redirect, taken.path)}
        case Respond() as respond:
            return {"direct_response": direct_response(respond)}


def _forward(forward: Forward, names: ClusterNames) -> dict[str, Any]:
    fields = weighted(forward.split, names)
    if isinstance(forward.timeout, timedelta):
        # The route's own `timeout` is nothing to gRPC (gRFC A31). Without any, the caller's deadline counts alone.
        fields["max_stream_duration"] = {"max_stream_duration": forward.timeout}
    if forward.sticky is not None and (policy := _hash_policy(forward.sticky)) is not None:
        fields["hash_policy"] = [policy]
    if (retry := _retry(forward.retry)) is not None:
        fields["retry_policy"] = retry
    return fields


def _hash_policy(sticky: Sticky) -> dict[str, Any] | None:
    match sticky:
        case StickyHeader(name):
            return {"header": {"header_name": name}}
        case StickyAddress():
            return _CHANNEL
        case _:
            return None


def _retry(retry: Retry | None) -> dict[str, Any] | None:
    return call_retry(retry) if retry is not None else None
