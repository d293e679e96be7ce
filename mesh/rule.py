"""What operators want: a service's subsets and its rules, in the order they are tried."""

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import NamedTuple

from mesh.duration import Timeout
from mesh.match import Match, ValueMatch
from mesh.policy import ClusterPolicy
from mesh.rate_limit import RateLimit
from mesh.service import Labels, Protocol, ServiceName
from mesh.split import Destination, Split


class Subset(NamedTuple):
    """A named label set over the service's endpoints."""

    name: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class Retry:
    """`on` holds Envoy's retry_on words (`5xx`, `connect-failure`, ...) and status codes as text.

    `attempts` counts retries, not the first try. `budget` is the share of active requests that may be
    retries, in percent (None: Envoy's breaker alone limits them).
    """

    attempts: int
    on: tuple[str, ...]
    per_try: Timeout | None = None
    budget: Fraction | None = None


@dataclass(frozen=True, slots=True)
class HeaderEdits:
    """`add` appends, `set` overwrites, `remove` deletes; names are lower-case."""

    add: tuple[tuple[str, str], ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


NO_HEADER_EDITS = HeaderEdits()


@dataclass(frozen=True, slots=True)
class StickyHeader:
    name: str


@dataclass(frozen=True, slots=True)
class StickyCookie:
    """`ttl` makes Envoy set the cookie where it is missing (timedelta(0): a session cookie); None only reads it."""

    name: str
    ttl: timedelta | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class StickyQuery:
    name: str


@dataclass(frozen=True, slots=True)
class StickyAddress:
    """The caller's address."""


Sticky = StickyHeader | StickyCookie | StickyQuery | StickyAddress


class Mirror(NamedTuple):
    """A copy of `percent` of the requests goes to `to`; its answers are thrown away."""

    to: Destination
    percent: Fraction


@dataclass(frozen=True, slots=True)
class Fault:
    """`delay` before, and/or `abort` (an HTTP status) instead of, the real answer, each for its percent."""

    delay: timedelta | None = None
    delay_percent: Fraction = Fraction(0)
    abort: int | None = None
    abort_percent: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Cors:
    """As Envoy's CorsPolicy. `origins` are exact, prefix, suffix or regex matches of the Origin header."""

    origins: tuple[ValueMatch, ...]
    methods: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    max_age: timedelta | None = None
    credentials: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite:
    """At most one of prefix, path and regex; at most one of host and host_from_header.

    `prefix` replaces what PathPrefix matched, `path` the whole path, `regex` (RE2, substitution) a part.
    """

    prefix: str | None = None
    path: str | None = None
    regex: tuple[str, str] | None = None
    host: str | None = None
    host_from_header: str | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """As Envoy's RedirectAction; `code` is 301, 302, 303, 307 or 308."""

    scheme: str | None = None
    host: str | None = None
    port: int | None = None
    path: str | None = None
    prefix: str | None = None
    regex: tuple[str, str] | None = None
    code: int = 301
    strip_query: bool = False


@dataclass(frozen=True, slots=True)
class Respond:
    """An answer that Envoy gives itself."""

    status: int
    body: str = ""


@dataclass(frozen=True, slots=True)
class Forward:
    """Requests go to a split of destinations."""

    split: Split
    sticky: Sticky | None = None
    mirrors: tuple[Mirror, ...] = ()
    rewrite: Rewrite | None = None
    timeout: Timeout | None = None
    idle_timeout: Timeout | None = None
    retry: Retry | None = None
    websocket: bool = False


Action = Forward | Redirect | Respond


@dataclass(frozen=True, slots=True)
class Rule:
    """The first rule whose `matches` hold takes the request: any one of them (OR); none written means all.

    `name` is unique in its service. Defaults of the file have already been put in, and the limits of all its rules.
    """

    name: str
    action: Action
    matches: tuple[Match, ...] = ()
    request_headers: HeaderEdits = NO_HEADER_EDITS
    response_headers: HeaderEdits = NO_HEADER_EDITS
    fault: Fault | None = None
    cors: Cors | None = None
    rate_limits: tuple[RateLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """An Envoy-shaped JSON object merged last into one generated resource.

    `target` is "cluster", "virtual_host", "route" or "listener"; `name` is a subset's name ("" for all of the
    service) for a cluster, a rule's name for a route, empty for the other two. `merge` is canonical JSON text,
    so that the value stays hashable.
    """

    target: str
    name: str
    merge: str


class SourceShare(NamedTuple):
    """`share` hundredths of a percent of a service's requests go to the endpoints that `source` has of it."""

    source: str
    share: int


@dataclass(frozen=True, slots=True)
class ServiceRoutes:
    """Everything one route file says about one service.

    `port` is the service's port that the rules are for (None: its main port). `listen` is "address:port",
    where sidecars offer a tcp or tls service. `sources` sum to 10,000 (empty: what the server's settings say).
    `source` names the file, for explanations only.
    """

    service: ServiceName
    port: str | int | None = None
    hosts: tuple[str, ...] = ()
    subsets: tuple[Subset, ...] = ()
    rules: tuple[Rule, ...] = ()
    policy: ClusterPolicy = ClusterPolicy()
    protocol: Protocol | None = None
    listen: tuple[str, int] | None = None
    patches: tuple[Patch, ...] = ()
    sources: tuple[SourceShare, ...] = ()
    source: str = ""

    def subset(self, name: str) -> Subset | None:
        return next((subset for subset in self.subsets if subset.name == name), None)


@dataclass(frozen=True, slots=True)
class BrokenRoutes:
    """A service whose route file never had a good version: it answers 503 with `code` as the body.

    The natural default would be worse: it would send a canary its share by endpoint count.
    """

    service: ServiceName
    code: str
    source: str = ""
