"""`rate_limits`: how many requests may come, and of whom."""

import re
from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, PlainValidator, Tag, WithJsonSchema

from envoy_api.substitution import unknown_command
from mesh.rate_limit import MOST_PARTS, Allowance
from operator_files.validate import FileModel, did_you_mean
from operator_files.values import NonEmpty, Text, refused, text_value
from routes.model.match import ONE_KEY, text_or_mapping
from routes.model.values import HeaderName, RuleText

UNITS: Final = ("second", "minute", "hour", "day", "week", "month", "year")
CALENDAR_UNITS: Final = ("day", "week", "month", "year")
UNLIMITED: Final = "unlimited"

_MOST_REQUESTS: Final = 2**32 - 1  # what a RateLimitResponse can say of a limit
_LONGEST: Final = 100
_MOST_HITS: Final = 1_000_000_000  # Envoy's limit on a descriptor's hits_addend
_ALLOWANCE: Final = re.compile(r"(?P<requests>[0-9]+)/(?:(?P<multiplier>[0-9]+) )?(?P<unit>[a-z]+)")


def parse_allowance(value: object) -> Allowance:
    """`100/minute`, `1/second`, `300/5 minutes`."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise refused(f"`{value}` has no time", f"write `{value}/minute`, or another unit")
    text = text_value(value)
    found = _ALLOWANCE.fullmatch(text)
    if found is None:
        raise refused(f"`{text}` is no limit", "write requests and time, such as `100/minute` or `300/5 minutes`")
    unit = found["unit"] if found["unit"] in UNITS else found["unit"].removesuffix("s")
    if unit not in UNITS:
        raise refused(f"`{found['unit']}` is no unit", did_you_mean(unit, UNITS))
    requests, multiplier = int(found["requests"]), int(found["multiplier"] or 1)
    if requests > _MOST_REQUESTS:
        raise refused(f"a limit is at most {_MOST_REQUESTS:,} requests", "write a smaller one, or take a longer unit")
    if not 1 <= multiplier <= _LONGEST:
        raise refused(f"a window is 1 to {_LONGEST} times its unit", "take another unit")
    return Allowance(requests, unit, multiplier)


def parse_value_allowance(value: object) -> Allowance | None:
    """As `parse_allowance`; None for `unlimited`."""
    return None if value == UNLIMITED else parse_allowance(value)


def parse_hits(value: object) -> int | str:
    """How much a request counts: a number, or one of Envoy's substitution commands."""
    if isinstance(value, str):
        if not re.fullmatch(r"%[^%]+%", value) or unknown_command(value) is not None:
            raise refused(
                f"`{value}` is no command that Envoy knows", "write a number, or one such as `%BYTES_SENT%`"
            )
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_HITS:
        raise refused("this is not how much a request can count", f"write a number from 1 to {_MOST_HITS:,}")
    return value


_FORM: Final = r"[0-9]+/([0-9]+ )?(second|minute|hour|day|week|month|year)s?"
_EXAMPLES: Final = ["100/minute", "300/5 minutes"]
AllowanceText = Annotated[
    Allowance,
    PlainValidator(parse_allowance),
    WithJsonSchema(
        {"title": "`requests/time`", "type": "string", "pattern": f"^{_FORM}$", "examples": _EXAMPLES},
    ),
]
ValueAllowance = Annotated[
    Allowance | None,
    PlainValidator(parse_value_allowance),
    WithJsonSchema(
        {"title": "`requests/time` or `unlimited`", "type": "string", "pattern": f"^({_FORM}|{UNLIMITED})$"},
    ),
]
Hits = Annotated[
    int | str,
    PlainValidator(parse_hits),
    WithJsonSchema(
        {
            "title": "number or command",
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _MOST_HITS},
                {"type": "string", "pattern": "^%.+%$"},
            ],
        },
    ),
]


class NetworkSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """The network of the client's address: so many leading bits of it."""

    v4: Annotated[int, Field(ge=0, le=32)] = Field(32, description="Bits of an IPv4 address.")
    v6: Annotated[int, Field(ge=0, le=128)] = Field(128, description="Bits of an IPv6 address.")


class MetadataSpec(FileModel):
    """Dynamic metadata of the request, that another filter has set."""

    namespace: NonEmpty = Field(description="The filter's namespace, such as `envoy.filters.http.jwt_authn`.")
    path: list[NonEmpty] = Field(min_length=1, max_length=16, description="The keys that lead to the value.")


class PartSpec(FileModel, json_schema_extra=ONE_KEY):
    """A part of a request: each value of it is counted by itself. One of these keys."""

    header: HeaderName | None = Field(None, description="This header's value.")
    query: NonEmpty | None = Field(None, description="This query parameter's value.")
    address: (
        Annotated[
            Annotated[Literal[True], Tag("<text>")] | Annotated[NetworkSpec, Tag("<keys>")],
            Discriminator(text_or_mapping),
        ]
        | None
    ) = Field(None, description="`true`: the client's address; or the network that it is in.")
    path: Literal[True] | None = Field(None, description="`true`: the path, without the query.")
    metadata: MetadataSpec | None = Field(None, description="What another filter has found out.")
    source_cluster: Literal[True] | None = Field(
        None, description="`true`: the calling proxy's `node.cluster`, so the service that calls."
    )
    destination_cluster: Literal[True] | None = Field(
        None, description="`true`: the cluster that the request goes to, so the side of a split."
    )


class RateLimitSpec(FileModel):
    """A limit on the requests that it is met by. One that goes over it gets 429 (gRPC: RESOURCE_EXHAUSTED)."""

    name: RuleText | None = Field(
        None,
        description="Unique in the file: it names the counters and the metrics. Default: the rule's name (`all` for "
        "the whole service) with `-limit-1`, `-limit-2`, ...",
    )
    allow: AllowanceText = Field(
        description="How many requests pass in which time, such as `100/minute` or `300/5 minutes`. `0/second`: none."
    )
    per: list[PartSpec] | None = Field(
        None,
        min_length=1,
        max_length=MOST_PARTS,
        description="What has a counter of its own: each value of these parts of a request (together, where there "
        "are several). Default: one counter for all.",
    )
    absent: Literal["shared", "unlimited"] = Field(
        "shared",
        description="What is done with a request that lacks one of these parts: `shared` counts all that lack the "
        "same parts in one counter, `unlimited` lets them pass.",
    )
    values: dict[Annotated[Text, Field(min_length=1)], ValueAllowance] | None = Field(
        None,
        min_length=1,
        description="Other limits for some values of the last part of `per`; `*` in a value stands for any "
        "characters, and the first that fits is taken, an exact one before.",
    )
    algorithm: Literal["fixed_window", "sliding_window", "token_bucket"] = Field(
        "fixed_window", description="How the counter forgets: at once when the window ends, or bit by bit."
    )
    burst: Annotated[int, Field(ge=1, le=_MOST_REQUESTS)] | None = Field(
        None, description="What a token bucket holds. Default: as much as comes back in the time of `allow`."
    )
    calendar: bool = Field(
        False,
        description="Days, weeks, months and years begin where the calendar says; otherwise a month is 30 days from "
        "the epoch on, a year 365, and a week begins on Thursday.",
    )
    time_zone: NonEmpty | None = Field(None, description="Whose calendar, as `Europe/Berlin`. Default: `UTC`.")
    shadow_mode: bool = Field(False, description="The limit only counts, and refuses nothing.")
    charge_denied: bool = Field(
        True, description="Whether a request that is refused, by this limit or by another, is counted too."
    )
    on_store_failure: Literal["allow", "deny"] | None = Field(
        None,
        description="What becomes of requests while the counters cannot be asked. Default: what the server's setting "
        "`ratelimit_failure_mode_deny` says.",
    )
    hits_addend: Hits = Field(
        1,
        description="How much a request counts: a number, or one of Envoy's substitution commands, such as "
        "`%REQ(x-cost)%` or `%DYNAMIC_METADATA(llm:tokens)%`. A request for which that gives no number passes "
        "uncounted.",
    )
    apply_on_stream_done: bool = Field(
        False,
        description="Count when the response has ended, by what is known then; a request passes while the limit is "
        "not exceeded.",
    )
