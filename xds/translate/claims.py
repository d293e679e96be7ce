"""Who gets a domain when several virtual hosts want it. (Envoy refuses a whole table over one duplicate.)"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mesh.service import ServiceName
from xds.translate.finding import Code, Finding
from xds.translate.naming import host_domains, service_domains, with_ports
from xds.translate.ports import CalledPort

OWN, OWN_DOTTED, EXTRA = range(3)
"""A service's own name wins over an extra host of a route file. A name with a dot, which may look like another
service's name and namespace, comes between."""


class Claim(NamedTuple):
    """`host`, the virtual host of a service, wants `domain`. A short name counts only for viewers in `only_in`.

    `source` is the route file that says so, empty for what discovery says.
    """

    domain: str
    rank: int
    service: ServiceName
    host: str
    source: str = ""
    only_in: str = ""


def claims_of(
    host: str, service: ServiceName, port: CalledPort, extra: Sequence[str], source: str, cluster_domain: str
) -> tuple[Claim, ...]:
    """Every domain that the virtual host of a service's port wants, each once."""
    rank = OWN_DOTTED if "." in service.name else OWN
    found = [
        Claim(domain, rank, service, host, source, service.namespace)
        for domain in with_ports(service.name.lower(), bare=port.main, port=port.number)
    ]
    for form in service_domains(service, cluster_domain):
        names = with_ports(form, bare=port.main, port=port.number)
        found += [Claim(domain, rank, service, host, source) for domain in names]
    for written in extra:
        found += [Claim(domain, EXTRA, service, host, source) for domain in host_domains(written, port.number)]
    return tuple({claim.domain: claim for claim in reversed(found)}.values())[::-1]


class Claims:
    """All claims by domain. Which hosts a change touches costs what the change does, not what all of them do."""

    def __init__(self) -> None:
        self._by_host: dict[str, tuple[Claim, ...]] = {}
        self._by_domain: dict[str, tuple[Claim, ...]] = {}
        self._contended: set[str] = set()

    def replace(self, host: str, claims: tuple[Claim, ...]) -> set[str]:
        """Set a host's claims (none: it is gone). Returns the hosts whose domains may be others now."""
        before = self._by_host.get(host, ())
        if before == claims:
            return set()
        if claims:
            self._by_host[host] = claims
        else:
            del self._by_host[host]
        touched = {host}
        new = {claim.domain: claim for claim in claims}
        for domain in {*new, *(claim.domain for claim in before)}:
            rivals = tuple(claim for claim in self._by_domain.get(domain, ()) if claim.host != host)
            touched.update(rival.host for rival in rivals)
            self._put(domain, (*rivals, new[domain]) if domain in new else rivals)
        return touched

    def _put(self, domain: str, claims: tuple[Claim, ...]) -> None:
        if claims:
            self._by_domain[domain] = claims
        else:
            del self._by_domain[domain]
        if len(claims) > 1:
            self._contended.add(domain)
        else:
            self._contended.discard(domain)

    def domains(self, host: str, viewer: str) -> tuple[str, ...]:
        """The domains that the host has in the eyes of a viewer in that namespace, in the order of its claims."""
        return tuple(
            claim.domain
            for claim in self._by_host.get(host, ())
            if claim.only_in in ("", viewer) and self._winner(claim.domain, viewer) is claim
        )

    def _winner(self, domain: str, viewer: str) -> Claim | None:
        claims = self._by_domain[domain]
        return claims[0] if len(claims) == 1 else _best(claims, viewer)

    def findings(self) -> Iterator[Finding]:
        """For each contended domain, who loses it to whom, in whose eyes."""
        for domain in sorted(self._contended):
            claims = self._by_domain[domain]
            verdicts: dict[tuple[Claim, Claim], list[str]] = {}
            viewers = sorted({claim.service.namespace for claim in claims})
            for viewer in viewers:
                best = _best(claims, viewer)
                for claim in claims:
                    if best is not None and claim is not best and claim.only_in in ("", viewer):
                        verdicts.setdefault((claim, best), []).append(viewer)
            for (loser, winner), losing in verdicts.items():
                yield _conflict(domain, loser, winner, losing if len(losing) < len(viewers) else [])


def _best(claims: Iterable[Claim], viewer: str) -> Claim | None:
    visible = (claim for claim in claims if claim.only_in in ("", viewer))
    return min(visible, key=lambda claim: _precedence(claim, viewer), default=None)


def _precedence(claim: Claim, viewer: str) -> tuple[int, bool, str, ServiceName, str]:
    return claim.rank, claim.service.namespace != viewer, claim.source, claim.service, claim.host


def _conflict(domain: str, loser: Claim, winner: Claim, viewers: list[str]) -> Finding:
    where = f" for callers in {', '.join(viewers)}" if viewers else ""
    reason = f"{_named(loser)} and {_named(winner)} both claim {domain}; the latter has it{where}"
    return Finding(loser.service, Code.DOMAIN_CONFLICT, reason)


def _named(claim: Claim) -> str:
    return f"{claim.service} ({claim.source})" if claim.source else str(claim.service)
