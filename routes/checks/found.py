"""Checks of routes against the services that were discovered. All are warnings: what is missing may come yet."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mesh.rule import Forward, ServiceRoutes, Subset
from mesh.service import Port, Service, ServiceName
from mesh.split import Destination, ServiceRef
from operator_files import yaml
from operator_files.problem import Code, Problem, Severity
from operator_files.validate import nearest
from operator_files.yaml import Document, Loc
from routes import codes


class Finding(NamedTuple):
    """Something to warn of, before its place in the text is looked up.

    `forms` are ways in which a destination may be written as the key of a split at `loc`.
    """

    code: Code
    message: str
    loc: Loc
    fix: str = ""
    forms: tuple[str, ...] = ()


def discovered_problems(
    path: str, text: str, routes: ServiceRoutes, services: Mapping[ServiceName, Service]
) -> tuple[Problem, ...]:
    """Warnings about subsets without endpoints, and about services or ports that nobody has discovered.

    The text is read again only where there is something to say.
    """
    found = tuple(findings(routes, services))
    document = yaml.parse(text, path) if found else None
    if not isinstance(document, Document):
        return ()
    return tuple(
        document.problem(
            finding.code,
            finding.message,
            written_at(document, finding.loc, finding.forms),
            fix=finding.fix,
            key=len(written_at(document, finding.loc, finding.forms)) > len(finding.loc),
            severity=Severity.WARNING,
        )
        for finding in found
    )


def findings(routes: ServiceRoutes, services: Mapping[ServiceName, Service]) -> Iterator[Finding]:
    service = services.get(routes.service)
    if service is None:
        message = f"the service `{routes.service}` has not been discovered"
        yield Finding(codes.SERVICE_UNKNOWN, message, ("service",), _near(routes.service, services))
    elif (port := service.port(routes.port)) is None:
        what, key = ("no ports", "service") if routes.port is None else (f"no port `{routes.port}`", "port")
        yield Finding(codes.SERVICE_UNKNOWN, f"the service has {what}", (key,), _ports(service))
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


def written_at(document: Document, loc: Loc, forms: tuple[str, ...]) -> Loc:
    """The key of the split at `loc` that is one of the forms, else `loc` itself."""
    written = document.data
    for step in loc:
        try:
            written = written[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return loc
    if not isinstance(written, dict):
        return loc
    return next(((*loc, form) for form in forms if form in written), loc)


def _subsets(routes: ServiceRoutes, port: Port) -> Iterator[Finding]:
    for subset in routes.subsets:
        if not any(subset.labels <= endpoint.labels for endpoint in port.endpoints):
            message = f"no endpoint of the service has the labels of `{subset.name}`"
            yield Finding(codes.SUBSET_EMPTY, message, ("subsets", subset.name), _labels_hint(subset, port))


def _labels_hint(subset: Subset, port: Port) -> str:
    """The values that the endpoints do have for the subset's labels."""
    for key, wanted in sorted(subset.labels):
        values = sorted({value for endpoint in port.endpoints for name, value in endpoint.labels if name == key})
        if wanted not in values:
            shown = ", ".join(values[:5]) + (", ..." if len(values) > 5 else "")
            return f"endpoints have `{key}`: {shown}" if values else f"no endpoint has a label `{key}`"
    return ""


def _destination(
    routes: ServiceRoutes, to: ServiceRef, loc: Loc, services: Mapping[ServiceName, Service]
) -> Iterator[Finding]:
    port = "" if to.port is None else f":{to.port}"
    is_near = to.service.namespace == routes.service.namespace
    forms = (f"{to.service}{port}", *((f"{to.service.name}{port}",) if is_near else ()))
    found = services.get(to.service)
    if found is None:
        message = f"the service `{to.service}` has not been discovered"
        yield Finding(codes.SERVICE_UNKNOWN, message, loc, _near(to.service, services), forms)
    elif found.port(to.port) is None:
        message = f"the service `{to.service}` has no port `{to.port}`"
        yield Finding(codes.SERVICE_UNKNOWN, message, loc, _ports(found), forms)


def _near(wanted: ServiceName, services: Mapping[ServiceName, Service]) -> str:
    near = nearest(str(wanted), [str(name) for name in services])
    return f"did you mean `{near}`?" if near else ""


def _ports(service: Service) -> str:
    shown = [f"`{port.name}` ({port.number})" if port.name else f"`{port.number}`" for port in service.ports]
    return "its ports are " + ", ".join(shown) if shown else ""
