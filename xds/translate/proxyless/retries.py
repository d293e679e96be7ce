"""Which failed calls a gRPC client tries again (gRFC A44): it decides by the call's status, never by HTTP's."""

from typing import Any, Final

from mesh.rule import Retry

STATUSES: Final = ("cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable")
"""What gRPC retries on; it leaves out any other word, and a policy without any of these."""

BY_ITSELF: Final = frozenset({"connect-failure", "refused-stream", "reset-before-request"})
"""What it tries again without being told: calls that no server has seen (gRFC A6, "Transparent Retries")."""

_UNAVAILABLE: Final = frozenset({"5xx", "gateway-error", "reset", "502", "503", "504"})
"""What reaches a gRPC client as UNAVAILABLE: a connection that broke, and a proxy's answer of its own (gRPC,
"HTTP to gRPC Status Code Mapping")."""


def call_statuses(retry: Retry) -> tuple[str, ...]:
    """The statuses that stand for the conditions of a rule; none where gRPC has no words for them."""
    wanted = {"unavailable" if word in _UNAVAILABLE else word for word in retry.on}
    return tuple(status for status in STATUSES if status in wanted)


def call_retry(retry: Retry) -> dict[str, Any] | None:
    """The fields of a RetryPolicy; None where nothing is to be tried again."""
    statuses = call_statuses(retry)
    if not (statuses and retry.attempts):
        return None
    return {"retry_on": ",".join(statuses), "num_retries": {"value": retry.attempts}}
