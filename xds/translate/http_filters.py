"""The HTTP filter chain. It is fixed: whatever a route may want is in it, and off until a route turns it on.

A changed chain would reach new connections only (a keep-alive connection still runs without the new filter long after
Envoy has acknowledged it), while a route's edit is in force for the next request.
"""

from typing import Any, Final

from envoy_api import message, pack

CORS: Final = "envoy.filters.http.cors"
FAULT: Final = "envoy.filters.http.fault"

_OPTIONAL: Final = (
    (CORS, "envoy.extensions.filters.http.cors.v3.Cors"),
    (FAULT, "envoy.extensions.filters.http.fault.v3.HTTPFault"),
)


def http_filters() -> list[dict[str, Any]]:
    """The HttpFilter list of every HTTP listener, the router last.

    CORS comes first, so that the answer to a fault is one that a browser lets its script see.
    """
    optional = [{"name": name, "typed_config": pack(message(config)), "disabled": True} for name, config in _OPTIONAL]
    # What the application sees is what its peer said, without headers of Envoy's own.
    router = message("envoy.extensions.filters.http.router.v3.Router", suppress_envoy_headers=True)
    return [*optional, {"name": "envoy.filters.http.router", "typed_config": pack(router)}]
