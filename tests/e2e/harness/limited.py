"""A listener whose requests an Envoy's rate limit filter asks a service about, by raw resources."""

from typing import Any, Final

import aiohttp

from tests.e2e.harness import raw

FILTER: Final = "envoy.filters.http.ratelimit"
_EXTENSIONS: Final = f"{raw.TYPE}envoy.extensions.filters.http."
_OVERRIDE: Final = {"requests_per_unit": 3, "unit": "HOUR"}
METADATA: Final = {
    "name": "metadata",
    "typed_config": {
        "@type": f"{_EXTENSIONS}set_metadata.v3.Config",
        "metadata": [{"metadata_namespace": "limits", "value": {"override": _OVERRIDE}}],
    },
}


def _number(header: str, key: str) -> dict[str, Any]:
    return {"header": header, "on_header_present": {"metadata_namespace": "limits", "key": key, "type": "NUMBER"}}


COST: Final = {
    "name": "cost",
    "typed_config": {
        "@type": f"{_EXTENSIONS}header_to_metadata.v3.Config",
        "request_rules": [_number("x-cost", "cost")],
        "response_rules": [_number("x-subset", "tokens")],
    },
}
"""What a request costs, and what its answer has cost, for the descriptors that look for it in metadata."""
HITS: Final = {
    "name": "hits",
    "typed_config": {
        "@type": f"{_EXTENSIONS}set_filter_state.v3.Config",
        "on_request_headers": [
            {
                "object_key": "envoy.ratelimit.hits_addend",
                "format_string": {
                    "text_format_source": {"inline_string": "%REQ(x-hits)%"},
                    "omit_empty_values": True,
                },
                "skip_if_empty": True,
            }
        ],
    },
}
"""The same for all of a request."""


def service(name: str, port: int) -> raw.Resource:
    """The cluster of a rate limit service."""
    options = {
        "@type": f"{raw.TYPE}envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": raw.address(port)}}]}]
    return raw.cluster(
        name,
        type="STATIC",
        load_assignment={"cluster_name": name, "endpoints": endpoints},
        typed_extension_protocol_options={"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
    )


def limited(name: str, port: int, cluster: str, domain: str, routes: dict[str, list[dict[str, Any]]]) -> raw.Resource:
    """Each path of `routes` leads to the cluster `upstream`, once the service `cluster` let pass what its rate limits
    ask for. A service that fails is a 500. (Envoy asks nothing about a route that answers by itself.)"""
    asking = {
        "@type": f"{_EXTENSIONS}ratelimit.v3.RateLimit",
        "domain": domain,
        "timeout": "10s",
        "failure_mode_deny": True,
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03",
        "rate_limit_service": {
            "transport_api_version": "V3",
            "grpc_service": {"envoy_grpc": {"cluster_name": cluster}},
        },
    }
    table = [_route(path, limits) for path, limits in routes.items()]
    filters = [METADATA, COST, HITS, {"name": FILTER, "typed_config": asking}]
    return raw.listener(name, port, raw.inline(*table), filters=filters)


def _route(path: str, limits: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the two places that rate limits have, a route's own has `limit` (in Envoy 1.36, it alone), and the filter's
    settings for the route have `hits_addend` and `apply_on_stream_done`."""
    route = raw.to("upstream", path)
    if any("limit" in limit for limit in limits):
        return {**route, "route": {**route["route"], "rate_limits": limits}}
    own = {"@type": f"{_EXTENSIONS}ratelimit.v3.RateLimitPerRoute", "rate_limits": limits}
    return {**route, "typed_per_filter_config": {FILTER: own}}


async def get(port: int, path: str, source: str = "127.0.0.1", **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers (names in lower case) of a GET from this source address."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connector = aiohttp.TCPConnector(local_addr=(source, 0))
    async with (
        aiohttp.ClientSession(connector=connector) as http,
        http.get(f"http://127.0.0.1:{port}{path}", headers=sent) as response,
    ):
        await response.read()
        return response.status, {name.lower(): value for name, value in response.headers.items()}
