"""All instances of a service, used or not; or all of any service that are not used."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from discovery.explain import Seen, Witness
from mesh.service import ServiceName
from operator_files.validate import nearest
from swashplate.explain.instances import parts_of_sources, seen_report
from swashplate.explain.reports import SeenReport, ServiceReport

MOST: Final = 1_000
"""So many instances are in one answer."""


def explain_service(asked: str, witness: Witness, namespace: str) -> ServiceReport:
    """`asked` is `checkout` or `checkout.shop`; empty: what is left out of any service. `namespace` is the default
    one."""
    if not asked:
        out = [one for name in sorted(_with_some_out(witness)) for one in witness.seen(name) if not one.used]
        return ServiceReport(
            asked=asked,
            instances=tuple(seen_report(one, namespace) for one in out[:MOST]),
            more=max(0, len(out) - MOST),
        )
    known_names = witness.names()
    meant = _readings(asked, namespace)
    name = next((one for one in meant if one in known_names), meant[0])
    found = witness.seen(name)
    # What is wrong comes first: of 10,000 instances it is the part that is looked for.
    reports = sorted(_reports(found, namespace, bool(witness.shares_of(name))), key=lambda one: one.used)
    known = any(name in source.services for source in witness.sources)
    return ServiceReport(
        asked=asked,
        known=known,
        instances=tuple(reports[:MOST]),
        more=max(0, len(reports) - MOST),
        used=sum(one.used for one in reports),
        sources=_sources(found, witness.shares_of(name)),
        advice=() if known or found else tuple(_meant(name, known_names, namespace)),
    )


def _readings(asked: str, namespace: str) -> list[ServiceName]:
    """What it may mean, the likeliest first: a name with its namespace, or one with a dot in it."""
    dots = [index for index, letter in enumerate(asked) if letter == "."]
    return [
        *(ServiceName(asked[dot + 1 :], asked[:dot]) for dot in dots),
        ServiceName(namespace, asked),
    ]


def _with_some_out(witness: Witness) -> Iterator[ServiceName]:
    """All that may have one: of one source alone, what is left out is what it says itself."""
    for name in witness.names():
        having = [source for source in witness.sources if name in source.services]
        if len(having) > 1 or any(name in source.left_out for source in witness.sources):
            yield name


def _reports(found: Iterable[Seen], namespace: str, shared: bool) -> Iterator[SeenReport]:
    for _, behind in groupby(found, key=lambda one: one.service_port):
        here = list(behind)
        parts: Mapping[str, float] = parts_of_sources(here) if shared else {}
        yield from (seen_report(one, namespace, parts.get(one.source) if one.used else None) for one in here)


def _sources(found: Iterable[Seen], shares: Mapping[str, int]) -> dict[str, float]:
    """Percent, by source; of the port with the lowest number, as shares are the same at each."""
    used = [one for one in found if one.used]
    first = min((one.service_port for one in used), default=0)
    parts = dict(parts_of_sources(one for one in used if one.service_port == first))
    return {**dict.fromkeys(shares, 0.0), **parts} if shares or len(parts) > 1 else {}


def _meant(name: ServiceName, known: Collection[ServiceName], namespace: str) -> Iterator[str]:
    elsewhere = sorted(other for other in known if other.name == name.name)
    if elsewhere:
        yield f"there is {', '.join(other.within(namespace) for other in elsewhere[:5])}"
    elif near := nearest(name.within(namespace), [other.within(namespace) for other in known]):
        yield f"did you mean {near}?"
