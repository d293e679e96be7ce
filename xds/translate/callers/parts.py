"""One caller translated: its virtual hosts, its load balancer's listeners, and what it wants in vain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from envoy_api import encode
from mesh.caller import Caller, CallerHost, Frontend
from mesh.rule import Forward, Rule
from mesh.service import Protocol, ServiceName
from mesh.split import Destination, ServiceRef, Split
from xds.resources.resource import Resource
from xds.translate.callers.frontends import frontend_name, frontend_resources, unfit
from xds.translate.callers.names import domains, host_name, is_main, is_sayable, nearest
from xds.translate.features import LEVELS, NEWEST
from xds.translate.finding import Code, Finding
from xds.translate.naming import port_name
from xds.translate.service_hosts import HostPart
from xds.translate.settings import TranslationSettings
from xds.translate.subject import DEFAULT_RULE
from xds.translate.virtual_hosts import virtual_host


class Target(NamedTuple):
    """What a reference to a service means: a cluster; `lacks` is the code for what of it is not there (yet)."""

    cluster: str
    lacks: Code | None = None


Targets = Mapping[ServiceRef, Target]


@dataclass(frozen=True, slots=True)
class CallerParts:
    """`hosts` are the dependencies that can be called, `frontends` listeners and the route tables of those for HTTP.

    `namespaces` are those of `hosts`. It is made of `caller` and `targets`: as long as these stay equal, so does it.
    """

    caller: Caller
    targets: Targets
    hosts: Mapping[CallerHost, HostPart]
    frontends: tuple[Resource, ...]
    findings: tuple[Finding, ...]
    namespaces: frozenset[str]

    def viewer(self, namespace: str) -> str:
        """Whose bare names a node in that namespace uses: its nearest that has any dependency, else the caller's."""
        return nearest(namespace, self.namespaces) or nearest(self.caller.namespace, self.namespaces) or ""

    def clusters(self) -> frozenset[str]:
        """All clusters that its requests go to."""
        of_hosts = (part.references for part in self.hosts.values())
        return frozenset[str]().union(*of_hosts, *(resource.references for resource in self.frontends))

    def cluster(self, to: Destination) -> str:
        """The cluster of a destination. Raises TypeError for a subset: whose would it be?"""
        return _cluster(self.targets, to)

    def domains(self, viewer: str) -> Iterator[tuple[HostPart, tuple[str, ...]]]:
        """Each virtual host with the domains that it has for nodes in that namespace; none without any."""
        for host, named in domains(self.caller, tuple(self.hosts), viewer)[0].items():
            if named:
                yield self.hosts[host], named


def caller_references(caller: Caller | None) -> frozenset[ServiceRef]:
    """The services that a caller's requests go to."""
    if caller is None:
        return frozenset()
    splits = [host.split for host in caller.hosts if host.protocol.is_http]
    splits += [frontend.split for frontend in caller.frontends]
    return frozenset(share.to for split in splits for share in split.shares if isinstance(share.to, ServiceRef))


def translate_caller(caller: Caller, targets: Targets, settings: TranslationSettings) -> CallerParts:
    """The caller's parts. What cannot be granted is left out, is in the findings, and costs nothing else anything."""
    made = _Translation(caller, targets, settings)
    hosts = made.hosts()
    frontends = tuple(made.frontends())
    namespaces = frozenset(host.namespace for host in hosts)
    made.conflicts(tuple(hosts), nearest(caller.namespace, namespaces) or "")
    return CallerParts(caller, targets, hosts, frontends, tuple(made.findings), namespaces)


def rules_of(split: Split) -> tuple[Rule, ...]:
    """Every request to the split."""
    return (Rule(DEFAULT_RULE, Forward(split)),)


_LACKING: Final = {
    Code.UNKNOWN_TARGET: "which nobody has discovered",
    Code.NO_SUCH_PORT: "a port that the service does not have",
}


class _Translation:
    """One caller on its way; `findings` are about it as a service of the default namespace."""

    def __init__(self, caller: Caller, targets: Targets, settings: TranslationSettings) -> None:
        self.findings: list[Finding] = []
        self._caller = caller
        self._targets = targets
        self._settings = settings
        self._service = ServiceName(settings.namespace, caller.cluster)

    def note(self, code: Code, reason: str) -> None:
        source = f" ({self._caller.source})" if self._caller.source else ""
        self.findings.append(Finding(self._service, code, f"caller {self._caller.cluster}{source}: {reason}"))

    def hosts(self) -> dict[CallerHost, HostPart]:
        """The virtual hosts of all dependencies that can have one."""
        found: dict[CallerHost, HostPart] = {}
        names: set[str] = set()
        for host in self._caller.hosts:
            if (reason := self._refusal(host)) is not None:
                self.note(*reason)
            elif (name := host_name(host)) in names:
                self.note(Code.SAME_PORT, f"{_said(host)} comes twice; the first one counts")
            else:
                names.add(name)
                self._put(found, host, name)
        return found

    def _refusal(self, host: CallerHost) -> tuple[Code, str] | None:
        if not host.protocol.is_http:
            reason = f"{_said(host)} is {host.protocol}: only HTTP is called by name through the egress listener"
            return Code.NOT_OFFERED, reason
        if not (is_sayable(host.service) and all(map(is_sayable, host.namespace.split("/")))):
            return (
                Code.NAME_CONFLICT,
                f"{_said(host)} cannot be called: a Host is made of letters, digits, - _ and dots",
            )
        if not (is_main(host) or host.port):
            return (
                Code.NO_SUCH_PORT,
                f"{_said(host)} cannot be called: its number is not known, and a Host has no names",
            )
        return None

    def _put(self, found: dict[CallerHost, HostPart], host: CallerHost, name: str) -> None:
        part = self._attempt(name, host.protocol, host.split, _said(host))
        if part is not None:
            found[host] = part

    def _attempt(self, name: str, protocol: Protocol, split: Split, what: str) -> HostPart | None:
        """A virtual host that sends everything to the split."""
        try:
            made = virtual_host(rules_of(split), protocol, self._cluster, NEWEST)
            body = encode(made)
        except Exception as error:  # a value that a message cannot hold, or a bug: either way one dependency's
            self.note(Code.TRANSLATION_FAILED, f"{what} is left out: {error!r}")
            return None
        self._missing(split, what)
        references = frozenset(self._cluster(share.to) for share in split.shares)
        return HostPart(name, (), dict.fromkeys(LEVELS, body), references)

    def _cluster(self, to: Destination) -> str:
        return _cluster(self._targets, to)

    def _missing(self, split: Split, what: str) -> None:
        for to, share in split.shares:
            if share and isinstance(to, ServiceRef) and (code := self._targets[to].lacks) is not None:
                target = to.service.within(self._settings.namespace)
                if to.port is not None:
                    target = port_name(target, to.port)
                self.note(code, f"{what} sends {share / 100:g}% to {target}, {_LACKING[code]}: that share gets 503")

    def frontends(self) -> Iterator[Resource]:
        """The load balancer's listeners and their route tables."""
        taken = {self._settings.egress[1]: "the egress listener"}
        if self._settings.ingress is not None:
            taken[self._settings.ingress[1]] = "the ingress listener"
        for frontend in self._caller.frontends:
            if (reason := unfit(frontend, taken)) is not None:
                self.note(*reason)
                continue
            taken[frontend.port] = f"frontend {frontend.name}"
            yield from self._frontend(frontend)

    def _frontend(self, frontend: Frontend) -> Iterable[Resource]:
        what = f"frontend {frontend.name}"
        host = None
        if frontend.protocol.is_http:
            host = self._attempt(f"{frontend_name(frontend)}/all", frontend.protocol, frontend.split, what)
            if host is None:
                return ()
        else:
            self._missing(frontend.split, what)
        try:
            return tuple(frontend_resources(frontend, host, self._cluster, self._settings))
        except Exception as error:  # as above
            self.note(Code.TRANSLATION_FAILED, f"{what} is left out: {error!r}")
            return ()

    def conflicts(self, hosts: Sequence[CallerHost], viewer: str) -> None:
        """Domains that two dependencies would have for nodes in that namespace."""
        if self._caller.domain and not is_sayable(self._caller.domain.strip(".")):
            self.note(Code.NAME_CONFLICT, f"{self._caller.domain!r} is no domain, so nothing is called by it")
        for domain, loser, winner in domains(self._caller, hosts, viewer)[1]:
            reason = f"{_said(loser)} and {_said(winner)} both claim {domain}; the latter has it"
            self.note(Code.DOMAIN_CONFLICT, reason)


def _cluster(targets: Targets, to: Destination) -> str:
    if not isinstance(to, ServiceRef):
        raise TypeError(f"{to!r} is no service")
    return targets[to].cluster


def _said(host: CallerHost) -> str:
    """A dependency as its caller's file has it."""
    return f"{host.service} of {host.namespace}" + ("" if is_main(host) else f", port {host.port_name},")
