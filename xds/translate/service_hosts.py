"""A service's virtual hosts: one for each HTTP port, with the domains it would like to have."""

from collections.abc import Iterable, Iterator, Mapping

from envoy_api import EnvoyMessage, encode, message
from envoy_api.substitution import unknown_command
from mesh.rule import Patch, Rule
from mesh.split import Destination
from xds.resources import types
from xds.resources.references import clusters_in
from xds.resources.resource import Resource
from xds.translate.claims import Claim, claims_of
from xds.translate.cookies import matches_cookies
from xds.translate.features import LEVELS, NEWEST, OLDEST, Features
from xds.translate.finding import Code, Finding
from xds.translate.matches import approximate_cookies
from xds.translate.naming import virtual_host_name
from xds.translate.patches import PatchError
from xds.translate.ports import CalledPort
from xds.translate.settings import TranslationSettings
from xds.translate.subject import Subject
from xds.translate.virtual_hosts import refusing_host, virtual_host


class HostPart:
    """A virtual host before it is known which of its claims it gets, which differs by viewer.

    `bodies` are its encodings without name and domains, by what the viewer's Envoy understands; `references` the
    clusters that its routes name.
    """

    __slots__ = ("_resources", "bodies", "claims", "name", "references")

    def __init__(
        self, name: str, claims: tuple[Claim, ...], bodies: Mapping[Features, bytes], references: frozenset[str]
    ) -> None:
        self.name = name
        self.claims = claims
        self.bodies = bodies
        self.references = references
        self._resources: dict[tuple[bytes, tuple[str, ...]], Resource] = {}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HostPart)
            and (self.name, self.claims, self.references) == (other.name, other.claims, other.references)
            and self.bodies == other.bodies
        )

    __hash__ = None  # type: ignore[assignment]

    def resource(self, features: Features, domains: tuple[str, ...]) -> Resource:
        """The virtual host with these domains. Views that give it the same ones share it.

        Name and domains are the first two fields, so they are put in front of the rest's encoding.
        """
        body = self.bodies[features]
        key = (body, domains)
        if (known := self._resources.get(key)) is None:
            head = message("envoy.config.route.v3.VirtualHost", name=self.name, domains=domains)
            made = encode(head) + body
            known = Resource(
                types.VIRTUAL_HOST, self.name, made, self.references, claims=frozenset(map(str.lower, domains))
            )
            self._resources[key] = known
        return known


def service_hosts(subject: Subject, settings: TranslationSettings, findings: list[Finding]) -> Iterator[HostPart]:
    """The service's virtual hosts. Without any good version of its route file, each of them answers 503."""
    for port in subject.ports:
        if not port.protocol.is_http:
            continue
        name = virtual_host_name(port.cluster)
        extra = subject.file.hosts if subject.file and port.routed else ()
        source = subject.routes.source if subject.routes and port.routed else ""
        claims = claims_of(name, subject.name, port, extra, source, settings.cluster_domain)
        if subject.broken is not None:
            body = encode(refusing_host(subject.broken.code))
            yield HostPart(name, claims, dict.fromkeys(LEVELS, body), frozenset())
        else:
            references: set[str] = set()
            limited = settings.rate_limiting is not None
            bodies = _bodies(subject, port, references, findings, limited=limited)
            yield HostPart(name, claims, bodies, frozenset(references))


def _bodies(
    subject: Subject, port: CalledPort, references: set[str], findings: list[Finding], *, limited: bool
) -> dict[Features, bytes]:
    """The host's encodings; the clusters that they name are added to `references`."""

    def cluster(to: Destination) -> str:
        references.add(name := subject.cluster_of(port, to))
        return name

    rules = subject.rules(port)
    patches = (subject.patches("route") + subject.patches("virtual_host")) if port.routed else ()

    def build(features: Features, patches: tuple[Patch, ...]) -> EnvoyMessage:
        return virtual_host(rules, port.protocol, cluster, features, patches, limited=limited)

    try:
        built = build(NEWEST, patches)
    except PatchError as error:
        reason = f"the patches of virtual host {port.cluster} are left out: {error}"
        findings.append(Finding(subject.name, Code.PATCH_FAILED, reason))
        patches = ()
        built = build(NEWEST, ())
    if patches:
        references.update(clusters_in(built))
    newest = encode(built)
    findings.extend(_header_findings(subject, rules))
    if not limited and (unlimited := [rule.name for rule in rules if rule.rate_limits]):
        reason = f"the limits of {', '.join(unlimited)} are not in force: no rate limit service is set"
        findings.append(Finding(subject.name, Code.NOT_APPLICABLE, reason))
    if not any(map(matches_cookies, rules)):
        return dict.fromkeys(LEVELS, newest)
    for cookie in sorted({name for rule in rules for name in approximate_cookies(rule.matches)}):
        reason = f"an Envoy before 1.37 matches the regex for cookie {cookie} against all that follows its `=`"
        findings.append(Finding(subject.name, Code.OLDER_ENVOY, reason))
    return {NEWEST: newest, OLDEST: encode(build(OLDEST, patches))}


def _header_findings(subject: Subject, rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in rules:
        edits = (rule.request_headers, rule.response_headers)
        for header, value in {pair for edit in edits for pair in (*edit.add, *edit.set)}:
            if (command := unknown_command(value)) is not None:
                reason = f"rule {rule.name}: {command} is no command of every Envoy, so {header} has it literally"
                yield Finding(subject.name, Code.NOT_APPLICABLE, reason)
