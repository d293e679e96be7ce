"""What `swashplate explain` says: the JSON of the admin server's /explain pages and of the command."""

from pydantic import BaseModel, ConfigDict


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TriedReport(_Report):
    """A rule that was tried. `place` is `file:line` where it is known. `reasons`: why each of its matches that were
    tried did not hold. `responds`: it answers itself, whatever is behind."""

    rule: str
    place: str
    taken: bool
    reasons: tuple[str, ...] = ()
    responds: bool = False


class DestinationReport(_Report):
    """Where requests go. `percent` of them (for a mirror: copies). `endpoints` counts what may be chosen from, by
    health and by zone; `sources` is what each source gets of these requests, in percent, where there are several.
    `left_out`: where there is no endpoint, the service's instances that are not used, a line each."""

    to: str
    percent: float
    cluster: str
    endpoints: int
    health: dict[str, int] = {}
    zones: dict[str, int] = {}
    sources: dict[str, float] = {}
    left_out: tuple[str, ...] = ()


class RouteReport(_Report):
    """What becomes of one request at one node.

    `answer` is the sentence that matters. `status` is that of an answer which Envoy gives itself, None where the
    request is forwarded. `tried` are the rules in their order, up to the one that took it.
    """

    server: str = ""
    request: str
    node: str
    node_cluster: str
    answer: str
    status: int | None = None
    body: str = ""
    domain: str = ""
    virtual_host: str = ""
    service: str = ""
    port: int = 0
    protocol: str = ""
    source: str = ""
    tried: tuple[TriedReport, ...] = ()
    destinations: tuple[DestinationReport, ...] = ()
    mirrors: tuple[DestinationReport, ...] = ()
    details: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the request would get an error that no rule asks for, always or by its share of a split."""
        if any(one.percent > 0 and not one.endpoints for one in self.destinations):
            return True
        return self.status is not None and self.status >= 400 and not any(tried.responds for tried in self.tried)


class SeenReport(_Report):
    """An instance that a source has seen. `used`: it is among the endpoints that proxies get; else `reason` (a word)
    and `detail` (a sentence, with what to do) say why not.

    `service_port` is what callers dial, 0 where the instance is behind no port; `port` is the instance's own.
    `weight` is what the source says, `given` what proxies get: where sources have shares, all weights are such that
    each source gets its own. `source_share` is that of this instance's source, in percent. `held`: the source does
    not have it any more, and that waits to be confirmed.
    """

    source: str
    service: str
    service_port: int
    address: str
    port: int
    instance: str = ""
    used: bool
    reason: str = ""
    detail: str = ""
    health: str = ""
    weight: int = 0
    given: int = 0
    source_share: float | None = None
    zone: str = ""
    machine: str = ""
    labels: dict[str, str] = {}
    held: bool = False


class EndpointReport(_Report):
    """All that is known of what was asked for. `watched` says what sources look at, `advice` what to check next."""

    server: str = ""
    asked: str
    seen: tuple[SeenReport, ...] = ()
    watched: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


class ServiceReport(_Report):
    """The instances of a service, those that are not used first; where none was asked for, those of any that are not.

    `known`: there is such a service. `used` counts instances that are, `more` those that are not listed. `sources` is
    what each source gets of the requests, in percent, where there are several. `advice`: what may have been meant.
    """

    server: str = ""
    asked: str
    known: bool = False
    instances: tuple[SeenReport, ...] = ()
    more: int = 0
    used: int = 0
    sources: dict[str, float] = {}
    advice: tuple[str, ...] = ()
