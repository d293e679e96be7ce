"""Checks of routes in force against the services that were discovered: what is missing may come yet."""

from collections.abc import Collection, Iterator, Mapping

from mesh.rule import Forward, ServiceRoutes
from mesh.service import Port, Service, ServiceName
from mesh.split import Destination, ServiceRef
from operator_files import yaml
from operator_files.problem import Problem, Severity
from operator_files.yaml import Document, Loc
from routes import codes
from routes.checks.empty import empty_destinations, labels_hint, worst, written_labels
from routes.checks.finding import Finding, LeftOut, forms_of, near_own_service, near_service, nobody, ports_hint


def discovered_problems(
    path: str,
    text: str,
    routes: ServiceRoutes,
    services: Mapping[ServiceName, Service],
    *,
    strict: bool = False,
    known: Collection[Problem] = (),
    left_out: LeftOut = nobody,
) -> tuple[Problem, ...]:
    """What is to be said about subsets without endpoints, and services or ports that nobody has discovered.

    All are warnings; `strict`: requests that would go to nobody are errors. Nothing is said where one of the `known`
    problems says already that the name is unknown. Where endpoints are missing, instances that are `left_out` are
    named. The text is read again only where there is something to say.
    """
    found = tuple(findings(routes, services))
    document = yaml.parse(text, path) if found else None
    if not isinstance(document, Document):
        return ()
    said = {problem.where for problem in known if problem.code == codes.UNKNOWN_DESTINATION.id}
    problems = (
        finding.problem(
            document, Severity.ERROR if strict and _sends_to_nobody(finding) else Severity.WARNING, left_out
        )
        for finding in found
    )
    return tuple(problem for problem in problems if problem.where not in said)


def findings(routes: ServiceRoutes, services: Mapping[ServiceName, Service]) -> Iterator[Finding]:
    empty = worst(empty_destinations(routes, services))
    yield from empty
    told = {(finding.loc, finding.forms) for finding in empty}
    yield from (finding for finding in _unused(routes, services) if (finding.loc, finding.forms) not in told)


def service_destinations(routes: ServiceRoutes) -> Iterator[tuple[ServiceRef, Loc]]:
    """Every destination of the rules that is a service, and where in the file it stands: the value of `to`."""
    for index, rule in enumerate(routes.rules):
        if isinstance(rule.action, Forward):
            places: list[tuple[Destination, Loc]] = [
                (share.to, ("rules", index, "to")) for share in rule.action.split.shares
            ]
            places += [(to.to, ("rules", index, "mirror", n, "to")) for n, to in enumerate(rule.action.mirrors)]
            for to, loc in places:
                if isinstance(to, ServiceRef):
                    yield to, loc


def _sends_to_nobody(finding: Finding) -> bool:
    return finding.code == codes.EMPTY_DESTINATION


def _unused(routes: ServiceRoutes, services: Mapping[ServiceName, Service]) -> Iterator[Finding]:
    """What is missing, whether or not requests go there."""
    service = services.get(routes.service)
    if service is None:
        message = f"the service `{routes.service}` has not been discovered"
        yield Finding(codes.SERVICE_UNKNOWN, message, ("service",), near_own_service(routes.service, services.keys()))
    elif (port := service.port(routes.port)) is None:
        what, key = ("no ports", "service") if routes.port is None else (f"no port `{routes.port}`", "port")
        yield Finding(codes.SERVICE_UNKNOWN, f"the service has {what}", (key,), ports_hint(service))
    else:
        yield from _subsets(routes, port)
        protocol = routes.protocol or port.protocol
        if routes.listen is not None and protocol.is_http:
            message = f"`listen` is for tcp and tls services, and this one speaks {protocol}"
            fix = "set `cluster: {protocol: tcp}`, or delete the key"
            yield Finding(codes.MISPLACED, message, ("listen",), fix)
    for to, loc in service_destinations(routes):
        if to.service != routes.service:
            yield from _destination(routes, to, loc, services)


def _subsets(routes: ServiceRoutes, port: Port) -> Iterator[Finding]:
    for subset in routes.subsets:
        if not any(subset.labels <= endpoint.labels for endpoint in port.endpoints):
            labels = written_labels(subset.labels)
            message = f"no endpoint of the service has the labels of `{subset.name}` ({labels})"
            hint = labels_hint(subset, port, routes)
            yield Finding(codes.SUBSET_EMPTY, message, ("subsets", subset.name), hint, lacking=routes.service)


def _destination(
    routes: ServiceRoutes, to: ServiceRef, loc: Loc, services: Mapping[ServiceName, Service]
) -> Iterator[Finding]:
    forms = forms_of(routes, to)
    found = services.get(to.service)
    if found is None:
        message = f"the service `{to.service}` has not been discovered"
        yield Finding(codes.SERVICE_UNKNOWN, message, loc, near_service(to.service, services), forms)
    elif found.port(to.port) is None:
        message = f"the service `{to.service}` has no port `{to.port}`"
        yield Finding(codes.SERVICE_UNKNOWN, message, loc, ports_hint(found), forms)
