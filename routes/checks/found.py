"""Checks of routes against the services that were discovered. All are warnings: what is missing may come yet."""

from collections.abc import Iterator, Mapping

from mesh.rule import Forward, ServiceRoutes, Subset
from mesh.service import Port, Service, ServiceName
from mesh.split import Destination, ServiceRef, SubsetRef
from operator_files.problem import Code, Problem, Severity
from operator_files.validate import nearest
from operator_files.yaml import Document, Loc
from routes import codes


def against_services(
    document: Document, routes: ServiceRoutes, services: Mapping[ServiceName, Service]
) -> Iterator[Problem]:
    """Subsets without endpoints, and services or ports that nobody has discovered."""
    service = services.get(routes.service)
    if service is None:
        yield _warning(
            document, codes.SERVICE_UNKNOWN, f"the service `{routes.service}` has not been discovered", ("service",),
            _near(routes.service, services),
        )  # fmt: skip
    else:
        port = service.port(routes.port)
        if port is None:
            yield _warning(
                document, codes.SERVICE_UNKNOWN, f"the service has no port `{routes.port}`", ("port",),
                "its ports are " + ", ".join(_shown(port) for port in service.ports),
            )  # fmt: skip
        else:
            yield from _subsets(document, routes, port)
            yield from _kind(document, routes, port)
    yield from _destinations(document, routes, services)


def _subsets(document: Document, routes: ServiceRoutes, port: Port) -> Iterator[Problem]:
    for subset in routes.subsets:
        if not any(subset.labels <= endpoint.labels for endpoint in port.endpoints):
            yield _warning(
                document, codes.SUBSET_EMPTY,
                f"no endpoint of the service has the labels of `{subset.name}`", ("subsets", subset.name),
                _labels_hint(subset, port),
            )  # fmt: skip


def _labels_hint(subset: Subset, port: Port) -> str:
    """The values that the endpoints do have for the subset's labels."""
    for key, wanted in sorted(subset.labels):
        values = sorted({value for endpoint in port.endpoints for name, value in endpoint.labels if name == key})
        if wanted not in values:
            shown = ", ".join(values[:5]) + (", ..." if len(values) > 5 else "")
            return f"endpoints have `{key}`: {shown}" if values else f"no endpoint has a label `{key}`"
    return ""


def _kind(document: Document, routes: ServiceRoutes, port: Port) -> Iterator[Problem]:
    protocol = routes.protocol or port.protocol
    if routes.listen is not None and protocol.is_http:
        yield _warning(
            document, codes.MISPLACED, f"`listen` is for tcp and tls services, and this one speaks {protocol}",
            ("listen",), "set `cluster: {protocol: tcp}`, or delete the key",
        )  # fmt: skip


def _destinations(
    document: Document, routes: ServiceRoutes, services: Mapping[ServiceName, Service]
) -> Iterator[Problem]:
    """Every service that rules send or mirror to. Rules are in the order of the file, one each."""
    for index, rule in enumerate(routes.rules):
        if not isinstance(rule.action, Forward):
            continue
        for share in rule.action.split.shares:
            yield from _destination(document, routes, share.to, ("rules", index, "to"), services)
        for number, mirror in enumerate(rule.action.mirrors):
            yield from _destination(document, routes, mirror.to, ("rules", index, "mirror", number, "to"), services)


def _destination(
    document: Document, routes: ServiceRoutes, to: Destination, at: Loc, services: Mapping[ServiceName, Service]
) -> Iterator[Problem]:
    if isinstance(to, SubsetRef) or to.service == routes.service:
        return
    found = services.get(to.service)
    loc = _written_at(document, at, to, routes.service.namespace)
    if found is None:
        yield _warning(
            document, codes.SERVICE_UNKNOWN, f"the service `{to.service}` has not been discovered", loc,
            _near(to.service, services), key=True,
        )  # fmt: skip
    elif found.port(to.port) is None:
        yield _warning(
            document, codes.SERVICE_UNKNOWN, f"the service `{to.service}` has no port `{to.port}`", loc,
            "its ports are " + ", ".join(_shown(port) for port in found.ports), key=True,
        )  # fmt: skip


def _written_at(document: Document, at: Loc, to: ServiceRef, namespace: str) -> Loc:
    """The key of a split under which a destination was written."""
    port = "" if to.port is None else f":{to.port}"
    written = document.data
    for step in at:
        try:
            written = written[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return at
    if not isinstance(written, dict):
        return at
    forms = (f"{to.service}{port}", f"{to.service.name}{port}" if to.service.namespace == namespace else "")
    return next(((*at, form) for form in forms if form in written), at)


def _near(wanted: ServiceName, services: Mapping[ServiceName, Service]) -> str:
    near = nearest(str(wanted), [str(name) for name in services])
    return f"did you mean `{near}`?" if near else ""


def _shown(port: Port) -> str:
    return f"`{port.name}` ({port.number})" if port.name else f"`{port.number}`"


def _warning(document: Document, code: Code, message: str, loc: Loc, fix: str = "", *, key: bool = False) -> Problem:
    return document.problem(code, message, loc, fix=fix, key=key, severity=Severity.WARNING)
