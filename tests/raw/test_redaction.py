"""Secrets are blacked out of what people see; everything else, paths too, stays, and stays a message of its type."""

from typing import Any

import pytest

import envoy_api
from xds.resources import types
from xds.resources.redaction import redacted

HUSH = {"inline_string": "hush"}
TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"


def shown(url: str, **fields: Any) -> dict[str, Any]:
    """A resource as it is shown, which must be one still."""
    data = envoy_api.to_dict(envoy_api.parse(envoy_api.class_for_url(url), fields))
    found = redacted(url, data)
    envoy_api.parse(envoy_api.class_for_url(url), found)
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {"tls_certificate": {"private_key": HUSH, "certificate_chain": HUSH}},
        {"tls_certificate": {"password": {"inline_bytes": "aHVzaA=="}}},
        {"session_ticket_keys": {"keys": [HUSH, HUSH]}},
        {"validation_context": {"trusted_ca": HUSH}},
        {"generic_secret": {"secret": HUSH}},
        {"generic_secret": {"secrets": {"token": HUSH}}},
    ],
)
def test_nothing_inline_of_a_secret_is_shown(fields: dict[str, Any]) -> None:
    found = shown(types.SECRET, name="s", **fields)
    assert found["name"] == "s"
    assert "hush" not in str(found)
    assert "aHVzaA==" not in str(found)


def test_places_and_what_is_no_secret_stay() -> None:
    pair = {"certificate_chain": {"filename": "/tls.crt"}, "private_key": {"filename": "/tls.key"}}
    secret = {"name": "s", "tls_certificate": {**pair, "watched_directory": {"path": "/tls"}}}
    assert shown(types.SECRET, **secret) == secret
    names = [{"san_type": "DNS", "matcher": {"exact": "a.com"}}]
    context = {"name": "s", "validation_context": {"match_typed_subject_alt_names": names}}
    assert shown(types.SECRET, **context) == context


def test_a_key_inside_another_resource() -> None:
    context = {"tls_certificates": [{"private_key": HUSH, "certificate_chain": HUSH}]}
    config = {"@type": f"{TLS}.UpstreamTlsContext", "common_tls_context": context, "sni": "a.com"}
    found = shown(types.CLUSTER, name="c", transport_socket={"name": "tls", "typed_config": config})
    assert str(found).count("hush") == 1, "the certificate is public"
    assert found["transport_socket"]["typed_config"]["sni"] == "a.com"


def test_a_token_that_is_plain_text() -> None:
    call = {"access_token": "hush"}
    google = {"target_uri": "a.com", "stat_prefix": "a", "call_credentials": [call]}
    config = {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
        "grpc_service": {"google_grpc": google},
    }
    found = shown(types.EXTENSION_CONFIG, name="x", typed_config=config)
    assert "hush" not in str(found)
    assert "a.com" in str(found)


API_KEYS = "type.googleapis.com/envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth"
OAUTH = "type.googleapis.com/envoy.extensions.filters.http.oauth2.v3.OAuth2"
TOKEN = "type.googleapis.com/envoy.extensions.grpc_service.call_credentials.access_token.v3.AccessTokenCredentials"


@pytest.mark.parametrize(
    "config",
    [
        {"@type": API_KEYS, "credentials": [{"key": "hush", "client": "c"}]},
        {"@type": TOKEN, "token": "hush"},
        {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.aws_lambda.v3.Config",
            "credentials": {"access_key_id": "hush", "secret_access_key": "hush"},
        },
    ],
)
def test_what_is_inside_of_a_sensitive_field(config: dict[str, Any]) -> None:
    found = shown(types.EXTENSION_CONFIG, name="x", typed_config=config)
    assert "hush" not in str(found)
    assert ("'client': 'c'" in str(found)) == (config["@type"] == API_KEYS)


def test_where_a_secret_is_fetched_from_stays() -> None:
    api = {
        "api_type": "GRPC",
        "transport_api_version": "V3",
        "grpc_services": [{"envoy_grpc": {"cluster_name": "sds"}}],
    }
    source = {"api_config_source": api, "resource_api_version": "V3"}
    credentials = {"client_id": "c", "token_secret": {"name": "t", "sds_config": source}}
    config = {"@type": OAUTH, "config": {"credentials": credentials}}
    found = shown(types.EXTENSION_CONFIG, name="x", typed_config=config)
    assert found["typed_config"] == config
