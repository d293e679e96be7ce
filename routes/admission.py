"""Which new versions of route files can be in force together with what is.

A service belongs to one file, and so does a host: Envoy refuses a whole route table in which two virtual hosts have
one domain. And a plain name that is neither a subset nor a known service is most likely a misspelt subset.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, Self

from mesh.rule import ServiceRoutes
from mesh.service import ServiceName
from mesh.split import ServiceRef
from operator_files import yaml
from operator_files.problem import Problem
from operator_files.validate import did_you_mean
from operator_files.yaml import Document, Loc
from routes import codes
from routes.checks.found import service_destinations, written_at

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


Refusal = Taken | Unknown


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
    known: Set[ServiceName] | None,
) -> Admission:
    """Take as many candidates as fit beside the claims that stand (without those of the candidates' own files).

    In the order of paths. A refused one leaves its file's last good version in force, whose claims go before those
    of all other candidates. Without such a version it is in force without the hosts that others have; nothing is
    when another has the service itself. `known` services: None when nobody knows yet.
    """
    refused: dict[str, tuple[Refusal, ...]] = {}
    kept: dict[str, ServiceRoutes | None] = {}
    while True:
        claims = standing.copy()
        for path, routes in kept.items():
            if routes is not None:
                claims.add(path, routes)
        newly: dict[str, tuple[Refusal, ...]] = {}
        for path in sorted(candidates.keys() - refused.keys()):
            reasons: tuple[Refusal, ...] = (*claims.taken(path, candidates[path]), *_unknown(candidates[path], known))
            if reasons:
                newly[path] = reasons
            else:
                claims.add(path, candidates[path])
        if not newly:
            return Admission({**candidates, **kept}, refused, claims)
        # What is kept for a refused file has claims of its own, so the others are looked at again.
        refused |= newly
        kept |= {path: last_good(path) or _without(candidates[path], reasons) for path, reasons in newly.items()}


def refusal_problems(
    path: str, text: str, refusals: tuple[Refusal, ...], known: Set[ServiceName]
) -> Iterator[Problem]:
    """Why the file is not taken, at the places in its text."""
    document = yaml.parse(text, path)
    if isinstance(document, Problem):
        return
    for refusal in refusals:
        if isinstance(refusal, Taken):
            yield _taken_problem(document, refusal)
        else:
            yield _unknown_problem(document, refusal, known)


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


def _unknown_problem(document: Document, refusal: Unknown, known: Set[ServiceName]) -> Problem:
    name = refusal.to.service
    subsets = document.data.get("subsets", ()) if isinstance(document.data, dict) else ()
    words = {str(subset) for subset in subsets} | {other.name for other in known if other.namespace == name.namespace}
    loc = written_at(document, refusal.loc, (name.name,))
    return document.problem(
        codes.UNKNOWN_DESTINATION,
        f"`{name.name}` is neither a subset of this file nor a known service of `{name.namespace}`",
        loc,
        fix=did_you_mean(name.name, words) if len(words) < 20 else did_you_mean(name.name, set(subsets)),
        key=True,
    )


def _claims(routes: ServiceRoutes) -> Iterator[Claim]:
    yield routes.service
    yield from routes.hosts


def _unknown(routes: ServiceRoutes, known: Set[ServiceName] | None) -> Iterator[Unknown]:
    """Destinations written as a plain name, without a namespace or port: what a misspelt subset looks like."""
    if known is None:
        return
    for to, loc in service_destinations(routes):
        is_plain = to.port is None and to.service.namespace == routes.service.namespace
        if is_plain and to.service != routes.service and to.service not in known:
            yield Unknown(to, loc)


def _without(routes: ServiceRoutes, refusals: tuple[Refusal, ...]) -> ServiceRoutes | None:
    """What can be in force of a file that never had a better version."""
    claims = {refusal.claim for refusal in refusals if isinstance(refusal, Taken)}
    if routes.service in claims:
        return None
    return replace(routes, hosts=tuple(host for host in routes.hosts if host not in claims))
