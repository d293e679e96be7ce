"""Limits: the filter that asks a rate limit service, where that is, and what it is asked about a request."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from envoy_api import EnvoyMessage, message, pack
from mesh.rate_limit import (
    DOMAIN,
    LIMIT_KEY,
    AddressPart,
    DestinationClusterPart,
    HeaderPart,
    MetadataPart,
    Part,
    PathPart,
    QueryPart,
    RateLimit,
    SourceClusterPart,
    may_be_missing,
)
from mesh.service import Endpoint, Protocol
from xds.translate.clusters import ClusterPlan, cluster
from xds.translate.endpoints import assignment
from xds.translate.settings import Address, RateLimiting

CLUSTER: Final = "ratelimit//service"
"""The cluster of a rate limit service with an address of its own. Two slashes: no service's cluster is called so."""
AUTHORITY: Final = "ratelimit"
"""The `:authority` of calls. Envoy's own choice, the cluster's name, with a slash is no host: calls are reset."""

_FILTER: Final = "envoy.extensions.filters.http.ratelimit.v3.RateLimit"
_PER_ROUTE: Final = "envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute"
_EXPRESSION: Final = "envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor"


def limit_filter(settings: RateLimiting) -> EnvoyMessage:
    """The filter, which asks about nothing until a route says about what."""
    target = CLUSTER if settings.address else settings.cluster
    return message(
        _FILTER,
        domain=DOMAIN,
        timeout=settings.timeout,
        failure_mode_deny=settings.failure_mode_deny,
        # What a gRPC caller would otherwise see is UNAVAILABLE, which it may try again at once.
        rate_limited_as_resource_exhausted=True,
        enable_x_ratelimit_headers="DRAFT_VERSION_03" if settings.headers else "OFF",
        rate_limit_service={
            "transport_api_version": "V3",
            "grpc_service": {"envoy_grpc": {"cluster_name": target, "authority": AUTHORITY}},
        },
    )


def limit_cluster(address: Address) -> EnvoyMessage:
    """The cluster of the rate limit service at that address, an IP address or a DNS name."""
    host, port = address
    encoded = assignment(CLUSTER, (Endpoint(host, port),))
    return cluster(ClusterPlan(CLUSTER, host, Protocol.GRPC, assignment=encoded))


def limited_route(limits: Iterable[RateLimit]) -> EnvoyMessage:
    """What turns the filter on for a route: one descriptor for each of its limits."""
    return message(_PER_ROUTE, rate_limits=[each for limit in limits for each in _descriptors(limit)])


def _descriptors(limit: RateLimit) -> Iterator[dict[str, Any]]:
    """One, or two where a request is charged at its end: before, it is asked about without being counted."""
    skip = not limit.unlimited_absent
    first = {"generic_key": {"descriptor_key": LIMIT_KEY, "descriptor_value": limit.id}}
    actions = [first, *(_action(part, skip=skip) for part in limit.per)]
    if limit.apply_on_stream_done:
        yield {"actions": actions, "hits_addend": {"number": {"value": 0}}}
        yield {"actions": actions, "apply_on_stream_done": True, **_hits(limit.hits_addend)}
    else:
        yield {"actions": actions, **_hits(limit.hits_addend)}


def _hits(hits: int | str) -> dict[str, Any]:
    if hits == 1:
        return {}
    return {"hits_addend": {"format": hits} if isinstance(hits, str) else {"number": {"value": hits}}}


def _action(part: Part, *, skip: bool) -> dict[str, Any]:
    """The action that gives a part's entry. `skip`: where there is none, the rest is asked about."""
    absent = {"skip_if_absent": skip} if may_be_missing(part) else {}
    match part:
        case HeaderPart(name):
            return {"request_headers": {"header_name": name, "descriptor_key": part.key, **absent}}
        case QueryPart(name):
            return {"query_parameters": {"query_parameter_name": name, "descriptor_key": part.key, **absent}}
        case MetadataPart(namespace, path):
            keys = {"key": namespace, "path": [{"key": key} for key in path]}
            return {"metadata": {"descriptor_key": part.key, "metadata_key": keys, **absent}}
        case AddressPart(v4, v6):
            if part.is_whole:
                return {"remote_address": {}}
            masks = {"v4_prefix_mask_len": {"value": v4}, "v6_prefix_mask_len": {"value": v6}}
            return {"masked_remote_address": masks}
        case PathPart():
            # The header `:path` has the query in it, by which every request could have a counter of its own.
            expression = message(_EXPRESSION, descriptor_key=part.key, text="request.url_path")
            return {"extension": {"name": "envoy.rate_limit_descriptors.expr", "typed_config": pack(expression)}}
        case SourceClusterPart():
            return {"source_cluster": {}}
        case DestinationClusterPart():
            return {"destination_cluster": {}}
