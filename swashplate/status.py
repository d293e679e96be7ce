"""What a server says about itself, its sources and its proxies: the JSON of /status and of `swashplate status`."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

SERVICE_FILES: Final = "service-files"
KUBERNETES: Final = "kubernetes"
CONSUL: Final = "consul"
ROUTE_FILES: Final = "route-files"
CONSUL_ROUTES: Final = "consul-routes"
LIGHTHOUSE: Final = "lighthouse"
LIMIT_FILES: Final = "limit-files"
COUNTERS: Final = "counters"
RATELIMIT_SERVICE: Final = "ratelimit-service"


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class NackReport(_Report):
    """A proxy's refusal. `message` is the proxy's own text, `resources` what the refused answer held."""

    message: str
    version: str
    resources: tuple[str, ...]
    at: datetime


class TypeReport(_Report):
    """One resource type at one proxy. `type` is its short name (CDS, EDS, ...).

    `draining` counts what the proxy still has and is about to lose. `unanswered_since`: when the oldest answer that
    the proxy has neither taken nor refused was sent. `quarantined` names what it refused and is kept back, `suspects`
    counts those among which the reason of a refusal is still being looked for.
    """

    type: str
    state: Literal["synced", "draining", "stale", "not sent", "nacked"]
    resources: int
    sent_version: str
    acked_version: str
    sent_at: datetime | None
    nack: NackReport | None
    draining: int = 0
    unanswered_since: datetime | None = None
    quarantined: tuple[str, ...] = ()
    suspects: int = 0


class WaitReport(_Report):
    """Some listeners or routes (`type`) wait until these clusters are ready; none are named where the proxy has not
    asked for clusters yet."""

    type: str
    since: datetime
    clusters: tuple[str, ...]


class LingerReport(_Report):
    """A cluster that is gone, and still at the proxy: until then, or as long as its routes may refer to it (None)."""

    cluster: str
    until: datetime | None


class RolloutReport(_Report):
    """What is still to come, on the way from what a proxy had to what it should have."""

    waiting: tuple[WaitReport, ...] = ()
    lingering: tuple[LingerReport, ...] = ()


class ProxyReport(_Report):
    """A connected client: one stream. `server` is the identifier of the server it is connected to."""

    server: str
    node: str
    cluster: str
    user_agent: str
    variant: Literal["sotw", "delta"]
    peer: str
    connected_at: datetime
    types: tuple[TypeReport, ...]
    rollout: RolloutReport = RolloutReport()


Kind = Literal["services", "routes", "callers", "resources", "limits", "counters", "asked"]
"""What a source is of."""


class SourceReport(_Report):
    """Where services, routes, callers, resources or limits come from, and what Envoys or this server ask about limits
    (`counters`, `asked`); `place` is a path or a URL, `services` their number (of limits: that of domains).

    `fresh` follows its source; `stale` serves what was last good; `waiting` has had no first answer yet.
    `held` names the services, and files, whose removal waits for a confirmation. A source of services has `endpoints`
    in use, and instances that it does not use (`left_out`, by reason). `notes` are sentences that are no errors.
    `stored_at`: when what an earlier life saved was good, where there has been no answer since the start.
    """

    server: str
    name: str
    kind: Kind
    place: str
    state: Literal["fresh", "stale", "waiting"]
    services: int
    last_sync: datetime | None
    stale_since: datetime | None
    error: str | None
    held: tuple[str, ...]
    endpoints: int = 0
    left_out: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    stored_at: datetime | None = None


class ProblemReport(_Report):
    """A problem of an operator's file. `text` is for people: the place, the line with a caret, the fix.

    For an error, `in_force` is what of the file is: its last good version, taken at `in_force_since` (None: before
    the server started), the rest of the newest one, or nothing, because none was ever good; `outcome` then says what
    clients get.
    """

    server: str
    severity: Literal["error", "warning"]
    code: str
    message: str
    file: str
    line: int | None
    column: int | None
    fix: str | None
    text: str
    in_force: Literal["last good", "rest", "nothing"] | None = None
    in_force_since: datetime | None = None
    outcome: str | None = None


class WarningReport(_Report):
    """What translation left out of the configuration of a service, and why, in one sentence."""

    service: str
    code: str
    reason: str


class LoadReport(_Report):
    """What proxies sent to a cluster's endpoints of one locality (`region/zone/sub_zone`), as they last reported it.

    Sums over `nodes` proxies, over `seconds` each: requests that ended well and badly, those dropped unsent, and
    those under way.
    """

    server: str
    cluster: str
    locality: str
    successes: int
    errors: int
    dropped: int
    in_flight: int
    nodes: int
    seconds: float


class FailureReport(_Report):
    """Requests like `503 GET http://checkout/orders` that failed: `times` at most, and less by `excess` at most."""

    request: str
    times: int
    excess: int


class FailuresReport(_Report):
    """What failed since then: how many requests, and the most frequent kinds."""

    server: str
    since: datetime
    total: int
    top: tuple[FailureReport, ...]


class ServerReport(_Report):
    """The server itself. `reasons` say why it is not ready; empty when it is. `pending`: a change was seen that
    proxies have not been told of yet. `has_proxies`: whether it is one of discovery; else it answers limits alone."""

    identifier: str
    version: str
    listen: str
    started_at: datetime
    ready: bool
    reasons: tuple[str, ...]
    pending: bool = False
    has_proxies: bool = True


class StatusReport(_Report):
    """Of one server, or of several merged."""

    servers: tuple[ServerReport, ...]
    sources: tuple[SourceReport, ...]
    problems: tuple[ProblemReport, ...]
    warnings: tuple[WarningReport, ...]
    proxies: tuple[ProxyReport, ...]
    loads: tuple[LoadReport, ...] = ()
    failures: tuple[FailuresReport, ...] = ()

    @property
    def in_force(self) -> bool:
        """Whether everything that operators wrote is in force at every proxy, as far as the servers know.

        False when a file is in error, a source is in error, a removal is held, a server is not ready or has not told
        its proxies of a change yet, or a proxy refused something, or has not acknowledged it yet.
        """
        return not (
            any(not server.ready or server.pending for server in self.servers)
            or any(problem.severity == "error" for problem in self.problems)
            or any(source.error or source.held for source in self.sources)
            or any(part.state in ("nacked", "stale") for proxy in self.proxies for part in proxy.types)
        )

    def of_node(self, node: str) -> "StatusReport":
        """The same with the proxies of this node id only."""
        return self.model_copy(update={"proxies": tuple(p for p in self.proxies if p.node == node)})


def merged(reports: Iterable[StatusReport]) -> StatusReport:
    """The reports of several servers as one, proxies sorted by node. Warnings that servers share come once."""
    parts = list(reports)
    return StatusReport(
        servers=tuple(server for part in parts for server in part.servers),
        sources=tuple(source for part in parts for source in part.sources),
        problems=tuple(problem for part in parts for problem in part.problems),
        loads=tuple(load for part in parts for load in part.loads),
        failures=tuple(failures for part in parts for failures in part.failures),
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        proxies=tuple(
            sorted(
                (proxy for part in parts for proxy in part.proxies),
                key=lambda proxy: (proxy.node, proxy.server, proxy.connected_at),
            )
        ),
    )
