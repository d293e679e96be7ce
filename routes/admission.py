"""Which new versions of route files can be in force together with what is.

A service belongs to one file, and so does a host: Envoy refuses a whole route table in which two virtual hosts have
one domain. And some edits are well-formed, and most likely misspelt: a plain name that is neither a subset nor a
known service; requests that would go to no endpoint; a file that stops describing a service that is there. What is
known of services decides; where nothing is known yet, nothing is refused for it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, Self

from mesh.rule import ServiceRoutes
from mesh.service import Service, ServiceName
from mesh.split import ServiceRef
from operator_files import yaml
from operator_files.problem import Problem, Severity
from operator_files.validate import did_you_mean
from operator_files.yaml import Document, Loc
from routes import codes
from routes.checks.empty import brought_by
from routes.checks.finding import Finding, near_own_service, written_at
from routes.checks.found import service_destinations

Claim = ServiceName | str
"""A service, or a host."""


class Taken(NamedTuple):
    """The file claims what another file (`owner`, a path) has."""

    claim: Claim
    owner: str


class Unknown(NamedTuple):
    """The file sends to a service of its own namespace that nobody knows."""

    to: ServiceRef
    loc: Loc


class Left(NamedTuple):
    """The file gives up `old`, a known service, for `new`, which is not known."""

    old: ServiceName
    new: ServiceName


Refusal = Taken | Unknown | Left | Finding
"""A Finding: requests would go to no endpoint."""

Known = Mapping[ServiceName, Service] | None
"""The services that are known; None while nobody knows."""


class Claims:
    """The owners (paths) of services and hosts, while an edit is worked out."""

    def __init__(self, owners: Mapping[Claim, str] = MappingProxyType({})) -> None:
        self._owners = dict(owners)

    def copy(self) -> Self:
        return type(self)(self._owners)

    def frozen(self) -> Mapping[Claim, str]:
        return MappingProxyType(self._owners)

    def add(self, path: str, routes: ServiceRoutes) -> None:
        for claim in _claims(routes):
            self._owners[claim] = path

    def drop(self, path: str, routes: ServiceRoutes) -> None:
        for claim in _claims(routes):
            if self._owners.get(claim) == path:
                del self._owners[claim]

    def taken(self, path: str, routes: ServiceRoutes) -> Iterator[Taken]:
        """What the file claims and another has."""
        for claim in _claims(routes):
            owner = self._owners.get(claim, path)
            if owner != path:
                yield Taken(claim, owner)


class Admission(NamedTuple):
    """The outcome: what every candidate's file has in force (None: nothing), why some are not (wholly) taken, and who
    owns what then."""

    in_force: dict[str, ServiceRoutes | None]
    refused: dict[str, tuple[Refusal, ...]]
    claims: Claims


def admit(
    candidates: Mapping[str, ServiceRoutes],
    last_good: Callable[[str], ServiceRoutes | None],
    standing: Claims,
    known: Known,
) -> Admission:
    """Take as many candidates as fit beside the claims that stand (without those of the candidates' own files).

    In the order of paths. A refused one leaves its file's last good version in force, whose claims go before those
    of all other candidates. Without such a version it comes last, and is in force without the hosts that others
    have; nothing is when another has the service itself.
    """
    refused: dict[str, tuple[Refusal, ...]] = {}
    while True:
        claims = standing.copy()
        for path in refused:
            if (kept := last_good(path)) is not None:
                claims.add(path, kept)
        remaining = sorted(candidates.keys() - refused.keys())
        described = {candidates[path].service for path in remaining}
        newly: dict[str, tuple[Refusal, ...]] = {}
        for path in remaining:
            routes = candidates[path]
            misspelt = _misspelt(routes, last_good(path), described, known)
            if reasons := (*claims.taken(path, routes), *misspelt):
                newly[path] = reasons
            else:
                claims.add(path, routes)
        if not newly:
            break
        # What is kept for a refused file has claims of its own, so the others are looked at again.
        refused |= newly
    in_force = {path: last_good(path) if path in refused else routes for path, routes in candidates.items()}
    for path in sorted(path for path in refused if in_force[path] is None):
        refused[path] = (*claims.taken(path, candidates[path]), *_unknown(candidates[path], known))
        if (rest := _without(candidates[path], refused[path])) is not None:
            claims.add(path, rest)
        in_force[path] = rest
    return Admission(in_force, {path: reasons for path, reasons in refused.items() if reasons}, claims)


def refusal_problems(
    path: str, text: str, refusals: tuple[Refusal, ...], known: Collection[ServiceName]
) -> Iterator[Problem]:
    """Why the file is not taken, at the places in its text."""
    document = yaml.parse(text, path)
    if isinstance(document, Problem):
        return
    for refusal in refusals:
        match refusal:
            case Taken():
                yield _taken_problem(document, refusal)
            case Unknown():
                yield _unknown_problem(document, refusal, known)
            case Left():
                yield _left_problem(document, refusal, known)
            case Finding():
                waits = "; the edit is taken as soon as there is such an endpoint"
                if refusal.lacking is not None:
                    waits += f" (`swashplate explain service {refusal.lacking}` lists what is left out of it)"
                yield refusal._replace(message=refusal.message + waits).problem(document, Severity.ERROR)


def _taken_problem(document: Document, refusal: Taken) -> Problem:
    if isinstance(refusal.claim, ServiceName):
        return document.problem(
            codes.SERVICE_TAKEN,
            f"the service `{refusal.claim}` is already described in {refusal.owner}",
            ("service",),
            fix="describe a service in one file only",
        )
    hosts = document.data.get("hosts", ()) if isinstance(document.data, dict) else ()
    index = next((i for i, host in enumerate(hosts) if str(host).lower() == refusal.claim), 0)
    return document.problem(
        codes.HOST_TAKEN,
        f"the host `{refusal.claim}` is already claimed in {refusal.owner}",
        ("hosts", index),
        fix="leave it to one of the two files",
    )


def _unknown_problem(document: Document, refusal: Unknown, known: Collection[ServiceName]) -> Problem:
    name = refusal.to.service
    subsets = document.data.get("subsets", ()) if isinstance(document.data, dict) else ()
    words = {str(subset) for subset in subsets} | {other.name for other in known if other.namespace == name.namespace}
    loc = written_at(document, refusal.loc, (name.name,))
    fix = did_you_mean(name.name, words) if len(words) < 20 else did_you_mean(name.name, set(subsets))
    elsewhere = sorted(str(other) for other in known if other.name == name.name)
    return document.problem(
        codes.UNKNOWN_DESTINATION,
        f"`{name.name}` is neither a subset of this file nor a known service of `{name.namespace}`",
        loc,
        fix=f"did you mean `{elsewhere[0]}`?" if elsewhere else fix,
        key=True,
    )


def _left_problem(document: Document, refusal: Left, known: Collection[ServiceName]) -> Problem:
    hint = near_own_service(refusal.new, {refusal.old, *known})
    return document.problem(
        codes.SERVICE_LEFT,
        f"the file described `{refusal.old}`, which is there, and `{refusal.new}` is not; the edit is taken as soon "
        "as it is",
        ("service",),
        fix=hint or f"to give up the routes of `{refusal.old}`, delete this file",
    )


def _claims(routes: ServiceRoutes) -> Iterator[Claim]:
    yield routes.service
    yield from routes.hosts


def _unknown(routes: ServiceRoutes, known: Known) -> Iterator[Unknown]:
    """Destinations written as a plain name, without a namespace or port: what a misspelt subset looks like."""
    if known is None:
        return
    for to, loc in service_destinations(routes):
        is_plain = to.port is None and to.service.namespace == routes.service.namespace
        if is_plain and to.service != routes.service and to.service not in known:
            yield Unknown(to, loc)


def _misspelt(
    routes: ServiceRoutes, before: ServiceRoutes | None, described: Set[ServiceName], known: Known
) -> Iterator[Unknown | Left | Finding]:
    """What does not look meant. With a version `before`, also what would take away from requests that it answers,
    unless another candidate describes (`described`) the service that is given up."""
    if known is None:
        return
    yield from _unknown(routes, known)
    if before is not None:
        old, new = before.service, routes.service
        if old != new and old in known and new not in known and old not in described:
            yield Left(old, new)
        yield from brought_by(routes, before, known)


def _without(routes: ServiceRoutes, refusals: tuple[Refusal, ...]) -> ServiceRoutes | None:
    """What can be in force of a file that never had a better version."""
    claims = {refusal.claim for refusal in refusals if isinstance(refusal, Taken)}
    if routes.service in claims:
        return None
    return replace(routes, hosts=tuple(host for host in routes.hosts if host not in claims))
