"""What a rule does with a request: where it goes, what is changed, and what is answered at once."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from operator_files.validate import FileModel
from operator_files.values import Duration, NonEmpty, Percent, PortNumber, Text, refused, show_percent
from routes import codes
from routes.model.match import ONE_KEY, Pattern, TextOr, text_or_mapping
from routes.model.values import (
    ByEditedHeader,
    DestinationText,
    EditedHeader,
    HeaderName,
    HeaderValue,
    Method,
    NewHost,
    NewPath,
    Regex,
    TimeoutValue,
    Token,
    check_substitution,
)

RETRY_WORDS = (
    "5xx", "cancelled", "connect-failure", "deadline-exceeded", "envoy-ratelimited", "gateway-error",
    "http3-post-connect-failure", "internal", "refused-stream", "reset", "reset-before-request",
    "resource-exhausted", "retriable-4xx", "unavailable",
)  # fmt: skip


def sums_to_100(split: dict[str, "Percent"]) -> dict[str, "Percent"]:
    """A mapping to shares, of which nothing is left over. Raises what `refused` makes."""
    total = sum(split.values())
    if total != 100:
        off = show_percent(abs(100 - total))  # type: ignore[arg-type]
        fix = f"add {off} to one of them" if total < 100 else f"take {off} off"
        raise refused(f"the shares sum to {show_percent(total)}, not 100%", fix, codes.SUM)  # type: ignore[arg-type]
    return split


SplitSpec = Annotated[dict[DestinationText, Percent], Field(min_length=1), AfterValidator(sums_to_100)]
To = Annotated[
    Annotated[DestinationText, Tag("<text>")] | Annotated[SplitSpec, Tag("<keys>")], Discriminator(text_or_mapping)
]
"""One destination, or a split: destination -> share."""


class RetrySpec(FileModel):
    """When and how often a request is tried again."""

    attempts: int = Field(ge=0, le=100, description="Retries after the first try; `0` for none.")
    on: list[Annotated[int, Field(ge=100, le=599)] | Literal[RETRY_WORDS]] = Field(  # type: ignore[valid-type]
        ["connect-failure", "refused-stream", "reset-before-request"],
        min_length=1,
        description="Envoy's retry conditions, and status codes. The default retries only what was not carried out.",
    )
    per_try: TimeoutValue | None = Field(None, description="How long one try may take. Not longer than `timeout`.")
    budget: Percent | None = Field(
        None, description="At most this share of the active requests to the service may be retries."
    )


class RegexReplace(FileModel):
    """A part of the path, found by a regex, is replaced."""

    pattern: Regex = Field(description="An RE2 regex; every match in the path (without the query) is replaced.")
    substitution: Text = Field(description=r"What takes its place; `\1` is the first group.")

    def model_post_init(self, _context: object) -> None:
        check_substitution(self.pattern, self.substitution)


class RewriteSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """What is changed in the request on its way: at most one of `prefix`, `path`, `regex`, and one of the hosts."""

    prefix: NewPath | None = Field(None, description="Takes the place of what the match's `prefix` took.")
    path: NewPath | None = Field(None, description="Takes the place of the whole path.")
    regex: RegexReplace | None = Field(None, description="Replaces a part of the path.")
    host: NewHost | None = Field(None, description="The new host.")
    host_from_header: HeaderName | None = Field(None, description="The new host is this header's value.")


class RedirectSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """An answer that sends the caller elsewhere: at most one of `path`, `prefix`, `regex`."""

    scheme: Literal["http", "https"] | None = Field(None, description="The new scheme.")
    host: NewHost | None = Field(None, description="The new host.")
    port: PortNumber | None = Field(None, description="The new port.")
    path: NewPath | None = Field(None, description="The new path; the query is kept, unless it has one of its own.")
    prefix: NewPath | None = Field(None, description="Takes the place of what the match's `prefix` took.")
    regex: RegexReplace | None = Field(None, description="Replaces a part of the path.")
    code: Literal[301, 302, 303, 307, 308] = Field(301, description="The status code.")
    strip_query: bool = Field(False, description="Drop the query.")


class RespondSpec(FileModel):
    """An answer that Envoy gives itself."""

    status: int = Field(ge=200, le=599, description="The status code.")
    body: Text = Field("", max_length=4096, description="The body: at most 4,096 bytes, Envoy's limit.")


class HeaderEditsSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """Changes to headers. Values may have Envoy's substitutions (`%REQ(x)%`); a percent sign is `%%`."""

    add: ByEditedHeader[HeaderValue] | None = Field(None, min_length=1, description="Appended to what is there.")
    set: ByEditedHeader[HeaderValue] | None = Field(
        None, min_length=1, description="Takes the place of what is there."
    )
    remove: list[EditedHeader] | None = Field(None, min_length=1, description="Deleted.")


class HeadersSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """Changes to the headers of requests and of responses."""

    request: HeaderEditsSpec | None = Field(None, description="On the way to the service.")
    response: HeaderEditsSpec | None = Field(None, description="On the way back to the caller.")


class CookieSpec(FileModel):
    """The cookie that keeps a caller on one side."""

    name: Token = Field(description="The cookie's name.")
    ttl: Duration | Literal["session"] | None = Field(
        None, description="Envoy sets the cookie where it is missing, for this long or for the `session`. "
        "Without it, the cookie is only read."
    )  # fmt: skip
    path: NewPath | None = Field(None, description="The path of the cookie that Envoy sets.")


class StickySpec(FileModel, json_schema_extra=ONE_KEY):
    """Which part of a request decides the side of a split, and the endpoint where the policy hashes. One of these."""

    header: HeaderName | None = Field(None, description="This header's value.")
    cookie: TextOr[CookieSpec] | None = Field(None, description="This cookie's value: its name, or its keys.")
    query: NonEmpty | None = Field(None, description="This query parameter's value.")
    address: Literal[True] | None = Field(None, description="`true`: the caller's address.")


class MirrorSpec(FileModel):
    """Copies of requests go to another destination, whose answers are thrown away."""

    to: DestinationText = Field(description="The destination of the copies.")
    percent: Percent = Field("100%", validate_default=True, description="The share of requests that is copied.")


class FaultSpec(FileModel):
    """Trouble made on purpose, for a share of the requests: a delay, an answer instead of the real one, or both."""

    delay: Duration | None = Field(None, description="Wait this long before the request goes on.")
    abort: int | None = Field(None, ge=200, le=599, description="Answer with this status instead.")
    percent: Percent = Field(description="The share of requests that the fault strikes (each of the two on its own).")


class CorsSpec(FileModel):
    """Which other sites may call from a browser, as in Envoy's CorsPolicy."""

    origins: list[Pattern] = Field(min_length=1, description="Allowed origins; `*` is any.")
    methods: list[Method] | None = Field(None, min_length=1, description="Allowed methods.")
    headers: list[Token] | None = Field(None, min_length=1, description="Request headers allowed.")
    expose: list[Token] | None = Field(None, min_length=1, description="Response headers the page may read.")
    max_age: Duration | None = Field(None, description="How long a browser may remember this.")
    credentials: bool = Field(False, description="Whether cookies and logins may be sent along.")
