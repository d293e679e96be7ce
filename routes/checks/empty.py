"""Destinations that get requests, and that no endpoint is behind, though their service has some.

What a misspelt label, port or service looks like. `routes.admission` takes no edit that brings one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mesh.match import Match
from mesh.rule import Forward, Rule, ServiceRoutes, Subset
from mesh.service import Labels, Port, Service, ServiceName
from mesh.split import ServiceRef, Share, SubsetRef
from operator_files.validate import nearest
from operator_files.yaml import Loc
from routes import codes
from routes.checks.finding import Finding, forms_of, near_service, ports_hint

Services = Mapping[ServiceName, Service]


class Selection(NamedTuple):
    """Which requests go to which endpoints. `labels` is None for all endpoints of the port."""

    matches: tuple[Match, ...]
    service: ServiceName
    port: str | int | None
    labels: Labels | None


class Empty(NamedTuple):
    """A selection without endpoints, and how much it gets, in hundredths of a percent."""

    selection: Selection
    share: int
    finding: Finding


def empty_destinations(routes: ServiceRoutes, services: Services) -> tuple[Empty, ...]:
    """Those of all rules. Not among them: a service without any endpoint, which is scaled to zero, and a plain name
    that is no service, which has a code of its own."""
    return tuple(
        found
        for index, rule in enumerate(routes.rules)
        if isinstance(rule.action, Forward)
        for share in rule.action.split.shares
        if share.share and (found := _empty(routes, services, index, rule, share)) is not None
    )


def brought_by(edit: ServiceRoutes, before: ServiceRoutes, services: Services) -> tuple[Finding, ...]:
    """What an edit would send to nobody, and more of it than the version before does. One for each place."""
    known = {empty.selection: empty.share for empty in empty_destinations(before, services)}
    new = [empty for empty in empty_destinations(edit, services) if empty.share > known.get(empty.selection, 0)]
    return worst(new)


def worst(found: Sequence[Empty]) -> tuple[Finding, ...]:
    """One finding for each place: that of the rule that sends most there."""
    at: dict[tuple[Loc, tuple[str, ...]], Empty] = {}
    for empty in found:
        place = (empty.finding.loc, empty.finding.forms)
        if place not in at or empty.share > at[place].share:
            at[place] = empty
    return tuple(empty.finding for empty in at.values())


def labels_hint(subset: Subset, port: Port, routes: ServiceRoutes) -> str:
    """The nearest labels that endpoints do have, and all values of the one that they lack. What another subset
    selects is never what was meant: to follow that would send one's requests to the other."""
    for key, wanted in sorted(subset.labels):
        values = sorted({value for endpoint in port.endpoints for name, value in endpoint.labels if name == key})
        if wanted in values:
            continue
        if not values:
            keys = sorted({name for endpoint in port.endpoints for name, _ in endpoint.labels})
            meant = _did_you_mean(nearest(key, keys))
            return f"{meant}no endpoint has a label `{key}`" + (f"; they have {_some(keys)}" if keys else "")
        others = {
            value: other.name for other in routes.subsets for name, value in sorted(other.labels) if name == key
        }
        near = nearest(wanted, [value for value in values if value not in others])
        meant = _did_you_mean(None if near is None else f"{key}: {near}")
        shown = [f"{value} (`{others[value]}`)" if value in others else value for value in values]
        return f"{meant}endpoints have `{key}`: {_some(shown)}"
    keys = [key for key, _ in sorted(subset.labels)]
    together = {
        ", ".join(f"{key}: {value}" for key, value in sorted(endpoint.labels) if key in keys)
        for endpoint in port.endpoints
        if subset.labels & endpoint.labels
    }
    return f"no endpoint has them together; there is {' and '.join(sorted(together)[:3])}" if together else ""


def written_labels(labels: Labels) -> str:
    return ", ".join(f"{key}: {value}" for key, value in sorted(labels))


def _empty(routes: ServiceRoutes, services: Services, index: int, rule: Rule, share: Share) -> Empty | None:
    if isinstance(share.to, SubsetRef):
        subset = routes.subset(share.to.subset)
        service = services.get(routes.service)
        if subset is None or service is None or not _serves(service):
            return None
        finding = _of_subset(routes, service, subset)
        selected = Selection(rule.matches, routes.service, routes.port, subset.labels)
    else:
        finding = _of_service(routes, services, index, share.to)
        selected = Selection(rule.matches, *share.to, None)
    if finding is None:
        return None
    message = f"{finding.message}, and rule `{rule.name}` gives it {_percent(share.share)}"
    return Empty(selected, share.share, finding._replace(code=codes.EMPTY_DESTINATION, message=message))


def _of_subset(routes: ServiceRoutes, service: Service, subset: Subset) -> Finding | None:
    port = service.port(routes.port)
    if port is None:
        return _no_port(routes, service)
    if any(subset.labels <= endpoint.labels for endpoint in port.endpoints):
        return None
    message = f"no endpoint of `{routes.service}` has the labels of `{subset.name}` ({written_labels(subset.labels)})"
    return Finding(
        codes.SUBSET_EMPTY,
        message,
        ("subsets", subset.name),
        labels_hint(subset, port, routes),
        lacking=routes.service,
    )


def _of_service(routes: ServiceRoutes, services: Services, index: int, to: ServiceRef) -> Finding | None:
    loc, forms = ("rules", index, "to"), forms_of(routes, to)
    service = services.get(to.service)
    if service is None:
        is_plain = to.port is None and to.service.namespace == routes.service.namespace
        if to.service == routes.service or is_plain:
            return None
        message = f"the service `{to.service}` has not been discovered"
        return Finding(codes.SERVICE_UNKNOWN, message, loc, near_service(to.service, services), forms)
    if not _serves(service):
        return None
    port = service.port(to.port)
    if port is None:
        if to == ServiceRef(routes.service, routes.port):
            return _no_port(routes, service)
        message = f"the service `{to.service}` has no port `{to.port}`"
        return Finding(codes.SERVICE_UNKNOWN, message, loc, ports_hint(service), forms)
    if port.endpoints:
        return None
    message = f"the port `{to.port or port.name or port.number}` of `{to.service}` has no endpoints"
    return Finding(codes.SERVICE_UNKNOWN, message, loc, "", forms, to.service)


def _no_port(routes: ServiceRoutes, service: Service) -> Finding:
    message = f"the service `{routes.service}` has no port `{routes.port}`"
    return Finding(codes.SERVICE_UNKNOWN, message, ("port",), ports_hint(service))


def _serves(service: Service) -> bool:
    return any(port.endpoints for port in service.ports)


def _percent(share: int) -> str:
    return f"{share / 100:.2f}".rstrip("0").rstrip(".") + "%"


def _some(values: list[str]) -> str:
    return ", ".join(values[:5]) + (", ..." if len(values) > 5 else "")


def _did_you_mean(word: str | None) -> str:
    return "" if word is None else f"did you mean `{word}`? "
