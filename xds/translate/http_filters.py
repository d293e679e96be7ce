"""The HTTP filter chain. It is fixed: whatever a route may want is in it, and off until a route turns it on.

A changed chain would reach new connections only (a keep-alive connection still runs without the new filter long after
Envoy has acknowledged it), while a route's edit is in force for the next request.
"""

from typing import Any, Final

from envoy_api import message, pack
from xds.translate.rate_limits import limit_filter
from xds.translate.settings import RateLimiting

CORS: Final = "envoy.filters.http.cors"
RATE_LIMIT: Final = "envoy.filters.http.ratelimit"
FAULT: Final = "envoy.filters.http.fault"


def http_filters(rate_limiting: RateLimiting | None = None) -> list[dict[str, Any]]:
    """The HttpFilter list of every HTTP listener, the router last. Only one with `rate_limiting` knows limits.

    CORS comes first, so that the answer to a fault, or a refusal, is one that a browser lets its script see. A fault
    stands for what the service does, so it comes after what keeps requests from the service.
    """
    configs = {CORS: message("envoy.extensions.filters.http.cors.v3.Cors")}
    if rate_limiting is not None:
        configs[RATE_LIMIT] = limit_filter(rate_limiting)
    configs[FAULT] = message("envoy.extensions.filters.http.fault.v3.HTTPFault")
    optional = [{"name": name, "typed_config": pack(config), "disabled": True} for name, config in configs.items()]
    # What the application sees is what its peer said, without headers of Envoy's own.
    router = message("envoy.extensions.filters.http.router.v3.Router", suppress_envoy_headers=True)
    return [*optional, {"name": "envoy.filters.http.router", "typed_config": pack(router)}]
