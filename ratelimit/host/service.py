"""The RateLimitService by its gRPC names (envoy/service/ratelimit/v3/rls.proto)."""

from typing import Final

SERVICE: Final = "envoy.service.ratelimit.v3.RateLimitService"
METHOD: Final = "ShouldRateLimit"
PATH: Final = f"/{SERVICE}/{METHOD}"
REQUEST: Final = "envoy.service.ratelimit.v3.RateLimitRequest"
RESPONSE: Final = "envoy.service.ratelimit.v3.RateLimitResponse"
