"""Units of time that limits are per, numbered as Envoy numbers them."""

from enum import IntEnum


class Unit(IntEnum):
    """As RateLimitResponse.RateLimit.Unit (envoy/service/ratelimit/v3/rls.proto)."""

    SECOND = 1
    MINUTE = 2
    HOUR = 3
    DAY = 4
    MONTH = 5
    YEAR = 6
    WEEK = 7

    @property
    def seconds(self) -> int:
        """Its length where no calendar says otherwise: 30 days a month and 365 a year, as in envoyproxy/ratelimit."""
        return _SECONDS[self]


_SECONDS = {
    Unit.SECOND: 1,
    Unit.MINUTE: 60,
    Unit.HOUR: 3600,
    Unit.DAY: 86_400,
    Unit.WEEK: 7 * 86_400,
    Unit.MONTH: 30 * 86_400,
    Unit.YEAR: 365 * 86_400,
}
