"""What is spoken to endpoints: HTTP version, connection limits, TLS."""

from datetime import timedelta
from typing import Any, Final

from envoy_api import message, pack
from mesh.duration import Off
from mesh.policy import ClusterPolicy, Tls
from mesh.service import Protocol
from xds.translate.endpoints import is_ip

MULTIPLEXED: Final = (Protocol.HTTP2, Protocol.GRPC)
"""What is spoken as HTTP/2."""


def http_protocol_options(protocol: Protocol, policy: ClusterPolicy) -> dict[str, Any]:
    """The fields of HttpProtocolOptions; empty where Envoy's defaults (HTTP/1.1) are what is wanted."""
    if not protocol.is_http:
        return {}
    common: dict[str, Any] = {}
    if policy.idle_timeout is not None:
        common["idle_timeout"] = off_is_zero(policy.idle_timeout)
    if policy.max_requests_per_connection is not None:
        common["max_requests_per_connection"] = {"value": policy.max_requests_per_connection}
    names: dict[str, Any] = {}
    if policy.tls is not None and policy.tls.sni is None:
        names = {"auto_sni": True, "auto_san_validation": policy.tls.verify and not policy.tls.sans}
    multiplexed = protocol in MULTIPLEXED
    if not (common or names or multiplexed):
        return {}
    version = "http2_protocol_options" if multiplexed else "http_protocol_options"
    fields: dict[str, Any] = {"explicit_http_config": {version: {}}}
    if common:
        fields["common_http_protocol_options"] = common
    if names:
        fields["upstream_http_protocol_options"] = names
    return fields


def tls_socket(tls: Tls, protocol: Protocol, system_roots: str) -> dict[str, Any]:
    """A transport socket that originates TLS.

    The certificate has to be for `sans`, else for `sni`; where neither is given, for the name that the request itself
    is for (HTTP only, see `http_protocol_options`).
    """
    context: dict[str, Any] = {}
    if alpn := tls.alpn or (("h2",) if protocol in MULTIPLEXED else ()):
        context["alpn_protocols"] = alpn
    if tls.cert is not None and tls.key is not None:
        pair = {"certificate_chain": {"filename": tls.cert}, "private_key": {"filename": tls.key}}
        context["tls_certificates"] = [pair]
    if tls.verify:
        names = tls.sans or ((tls.sni,) if tls.sni else ())
        context["validation_context"] = {
            "trusted_ca": {"filename": tls.ca or system_roots},
            "match_typed_subject_alt_names": [
                {"san_type": _san_type(name), "matcher": {"exact": name}} for name in names
            ],
        }
    fields: dict[str, Any] = {"common_tls_context": context}
    if tls.sni is not None:
        fields["sni"] = tls.sni
    upstream = message("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", **fields)
    return {"name": "envoy.transport_sockets.tls", "typed_config": pack(upstream)}


def _san_type(name: str) -> str:
    if "://" in name:
        return "URI"  # SPIFFE identities
    return "IP_ADDRESS" if is_ip(name) else "DNS"


def off_is_zero(timeout: timedelta | Off) -> timedelta:
    """A timeout as Envoy writes it."""
    return timedelta(0) if isinstance(timeout, Off) else timeout
