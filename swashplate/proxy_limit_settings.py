"""Settings of what Envoys are told about limits: whom they ask, and what they do without an answer."""

from datetime import timedelta

from pydantic import BaseModel, Field

from swashplate.setting_types import AddressSetting, Duration


class ProxyLimitFields(BaseModel):
    """Limits of route files, on the Envoys' side."""

    ratelimit_service: AddressSetting | None = Field(
        None,
        description=(
            "Address of the rate limit service that Envoys ask about the limits of route files. Without it they ask "
            "this server, at the address where they get their configuration."
        ),
    )
    ratelimit_timeout: Duration = Field(
        timedelta(milliseconds=20),
        ge=timedelta(milliseconds=1),
        description="How long an Envoy waits for the answer to whether a request is within its limits.",
    )
    ratelimit_failure_mode_deny: bool = Field(
        False,
        description=(
            "Envoys refuse a request, with 500, when they get no answer in time or an error. Otherwise it passes."
        ),
    )
    ratelimit_x_headers: bool = Field(
        True,
        description=(
            "Envoys tell callers the limit that is nearest to its end: x-ratelimit-limit, x-ratelimit-remaining, "
            "x-ratelimit-reset."
        ),
    )
