"""The form of limit files: envoyproxy/ratelimit's, with keys of our own that it has no like of."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from operator_files.validate import FileModel
from operator_files.values import NonEmpty, Text, refused
from ratelimit.unit import Unit

MOST_REQUESTS: Final = 2**32 - 1
"""As much as a RateLimitResponse can say of a limit."""

_WORDS: Final = sorted((unit.name.lower() for unit in Unit), key=lambda word: Unit[word.upper()].seconds)
UnitWord = Annotated[
    Text,
    WithJsonSchema(
        {"title": ", ".join(f"`{word}`" for word in _WORDS), "enum": [*_WORDS, *(word.upper() for word in _WORDS)]}
    ),
]


def _storable(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a protobuf Struct can hold."""
    try:
        _measure(metadata)
    except OverflowError:
        raise refused("a number in it is too large for a double", "quote it") from None
    return metadata


def _measure(value: object) -> None:
    if isinstance(value, int):
        float(value)
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            _measure(inner)


class ReplacesSpec(FileModel):
    """A name that is replaced."""

    name: NonEmpty = Field(description="The `name` of a limit of this domain.")


class RateLimitSpec(FileModel):
    """A limit. From `unit_multiplier` on the keys are unknown to envoyproxy/ratelimit."""

    unit: UnitWord | None = Field(
        None, description="The unit of time, in any case of letters. Required, but for what is unlimited."
    )
    requests_per_unit: Annotated[int, Field(ge=0, le=MOST_REQUESTS)] | None = Field(
        None, description="How many requests pass in a window; 0 denies all. Default: 0."
    )
    unlimited: bool = Field(False, description="Requests pass without being counted.")
    name: Text = Field("", description="What `replaces` of other limits call it.")
    replaces: list[ReplacesSpec] = Field(
        [], description="Limits that are dropped where a request meets them together with this one."
    )
    unit_multiplier: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="So many units are one window: `unit: minute` with 5 is five minutes. Default: 1."
    )
    algorithm: Literal["fixed_window", "sliding_window", "token_bucket"] | None = Field(
        None, description="How the counter forgets: at once when the window ends, or bit by bit. "
        "Default: `fixed_window`."
    )  # fmt: skip
    burst: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = Field(
        None, description="What a token bucket holds. Default: as much as comes back in a window."
    )
    calendar: bool = Field(
        False,
        description="Days, weeks, months and years are those of a calendar. Otherwise a month has 30 days and a year "
        "365, and windows are counted from 1970-01-01 on, a Thursday.",
    )
    time_zone: NonEmpty | None = Field(None, description="Whose calendar, as `Europe/Berlin`. Default: `UTC`.")
    charge_denied: bool | None = Field(
        None, description="Whether a request that is denied, by this limit or another that it meets, is counted too. "
        "Default: `true`."
    )  # fmt: skip
    on_store_failure: Literal["allow", "deny"] | None = Field(
        None,
        description="What the limit answers while its counter cannot be asked. Without it the call fails, and "
        "Envoy's `failure_mode_deny` decides.",
    )


class OneOfSeveralSpec(RateLimitSpec):
    """A limit in `rate_limits`."""

    shadow_mode: bool | None = Field(
        None, description="Whether this limit alone only counts, and never denies. Default: the descriptor's."
    )


class DescriptorSpec(FileModel):
    """A key, with a value or without, and what follows from it. A descriptor without limits and without descriptors
    lets pass, uncounted, what would otherwise meet one beside it."""

    key: NonEmpty = Field(description="The key of an entry.")
    value: Text = Field(
        "",
        description="Its value; `*` in it stands for any characters. Without it any value is meant, each with a "
        "counter of its own.",
    )
    rate_limit: RateLimitSpec | None = Field(None, description="The limit of requests that end here.")
    rate_limits: Annotated[list[OneOfSeveralSpec], Field(min_length=1)] | None = Field(
        None,
        description="Several limits in the place of one, each with another window: the strictest answers. Unknown to "
        "envoyproxy/ratelimit.",
    )
    descriptors: list["DescriptorSpec"] = Field([], description="What may follow in a request.")
    shadow_mode: bool = Field(False, description="The limit counts, and never denies.")
    quota_mode: bool = Field(
        False,
        description="The limit is a quota: a request is denied by quotas only where all that it meets are used up.",
    )
    detailed_metric: bool = Field(
        False, description="Statistics tell every value of every level: series grow with the values."
    )
    value_to_metric: bool = Field(False, description="Statistics tell the values of this level.")
    share_threshold: bool = Field(False, description="All values of the pattern share one counter.")
    metadata: Annotated[dict[str, Any], AfterValidator(_storable)] = Field(
        {}, description="What the answer's dynamic metadata says where the limit was met and passed: any keys."
    )


class LimitFile(FileModel):
    """One domain, or a part of one where domains are merged."""

    domain: NonEmpty = Field(description="What Envoy's rate limit filter calls it.")
    name: Text = Field(
        "",
        description="The name that a RateLimitConfig has as a resource. It is read over.",
    )
    descriptors: list[DescriptorSpec] = Field([], description="The first level.")
