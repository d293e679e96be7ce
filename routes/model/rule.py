"""One rule of a route file, and the defaults that rules share."""

from pydantic import Field

from operator_files.validate import FileModel
from routes.model.action import (
    CorsSpec,
    FaultSpec,
    HeadersSpec,
    MirrorSpec,
    RedirectSpec,
    RespondSpec,
    RetrySpec,
    RewriteSpec,
    StickySpec,
    To,
)
from routes.model.match import MatchSpec
from routes.model.rate_limit import RateLimitSpec
from routes.model.values import RuleText, TimeoutValue

NOT_YET = "is not available in this version"


class DefaultsSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """What a rule with `to` has where it says nothing itself. A rule's own key replaces the whole of it."""

    timeout: TimeoutValue | None = Field(None, description="As in a rule.")
    idle_timeout: TimeoutValue | None = Field(None, description="As in a rule.")
    retry: RetrySpec | None = Field(None, description="As in a rule.")
    cors: CorsSpec | None = Field(None, description="As in a rule (and for rules with `redirect` or `respond` too).")


class RuleSpec(FileModel):
    """One rule: which requests it takes, and exactly one of `to`, `redirect` and `respond`."""

    # The place of traffic shifts in the format.
    reserved = {"shift": NOT_YET}  # noqa: RUF012 - a ClassVar in the base

    name: RuleText | None = Field(
        None,
        description="Unique in the file: it names the rule in metrics and status. Default: `rule-1`, `rule-2`, ...",
    )
    match: list[MatchSpec] | None = Field(
        None, min_length=1, description="Any of these (OR). Without it, the rule takes everything, and must be last."
    )
    to: To | None = Field(
        None, description="Where requests go: one destination, or a split whose shares sum to 100%. "
        "`0%` keeps a destination warm without sending it anything."
    )  # fmt: skip
    redirect: RedirectSpec | None = Field(None, description="Sends the caller elsewhere.")
    respond: RespondSpec | None = Field(None, description="Answers at once.")
    timeout: TimeoutValue | None = Field(
        None,
        description="The whole request with its retries; `infinity` for none. Default: 15s, and none for gRPC.",
    )
    idle_timeout: TimeoutValue | None = Field(
        None,
        description="How long a request may pass no bytes; `infinity` for ever. Default: 5m, or a longer `timeout`.",
    )
    retry: RetrySpec | None = Field(
        None, description="When it is tried again. Default: twice, where no endpoint has seen the request."
    )
    rewrite: RewriteSpec | None = Field(None, description="Changes to path and host.")
    headers: HeadersSpec | None = Field(None, description="Changes to headers.")
    sticky: StickySpec | None = Field(None, description="Keeps a caller on one side of a split.")
    mirror: list[MirrorSpec] | None = Field(
        None, min_length=1, description="Copies of requests to other destinations."
    )
    fault: FaultSpec | None = Field(None, description="Trouble made on purpose.")
    cors: CorsSpec | None = Field(None, description="Cross-origin calls from browsers.")
    rate_limits: list[RateLimitSpec] | None = Field(
        None, min_length=1, max_length=16, description="How many requests may come by this rule."
    )
    websocket: bool = Field(False, description="Whether a request may be upgraded to a WebSocket.")
