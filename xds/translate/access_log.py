"""Access logs over gRPC of requests that failed; Envoy leaves out the others, which are far more."""

from typing import Any, Final

from envoy_api import message, pack

LOG_NAME: Final = "swashplate-failures"
_CONFIG: Final = "envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig"


def failure_log(cluster: str) -> dict[str, Any]:
    """An AccessLog to the AccessLogService of a cluster: codes outside of 2xx, and 0 for callers that went away."""
    config = message(
        _CONFIG,
        common_config={
            "log_name": LOG_NAME,
            "transport_api_version": "V3",
            "grpc_service": {"envoy_grpc": {"cluster_name": cluster}},
        },
    )
    return {
        "name": "envoy.access_loggers.http_grpc",
        "filter": {"or_filter": {"filters": [_code("GE", 300), _code("LE", 199)]}},
        "typed_config": pack(config),
    }


def _code(comparison: str, code: int) -> dict[str, Any]:
    # Envoy wants a runtime key with every such number; nobody sets these.
    value = {"default_value": code, "runtime_key": f"{LOG_NAME}.{comparison.lower()}"}
    return {"status_code_filter": {"comparison": {"op": comparison, "value": value}}}
