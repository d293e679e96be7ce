"""Envoy's substitution commands (`%REQ(x-user)%`) in header values.

Envoy refuses a whole route table over one command that it does not know, so a value is checked before it is used.
Listed is what every supported release takes, 1.36 and later; commands whose arguments are languages of their own
(CEL, FILTER_STATE, ...) are left out, because whether one is valid cannot be told from outside.
Source: Envoy's documentation, "Substitution format strings"; the tests hold the list against real Envoys.
"""

import re
from typing import Final

_SIDES: Final = """
DIRECT_LOCAL_ADDRESS DIRECT_LOCAL_ADDRESS_WITHOUT_PORT DIRECT_LOCAL_PORT DIRECT_REMOTE_ADDRESS
DIRECT_REMOTE_ADDRESS_WITHOUT_PORT DIRECT_REMOTE_PORT HANDSHAKE_DURATION HEADER_BYTES_RECEIVED HEADER_BYTES_SENT
LOCAL_ADDRESS LOCAL_ADDRESS_WITHOUT_PORT LOCAL_DNS_SAN LOCAL_PORT LOCAL_SUBJECT LOCAL_URI_SAN PEER_CERT PEER_CERT_V_END
PEER_CERT_V_START PEER_DNS_SAN PEER_FINGERPRINT_256 PEER_IP_SAN PEER_ISSUER PEER_SERIAL PEER_SUBJECT PEER_URI_SAN
REMOTE_ADDRESS REMOTE_ADDRESS_WITHOUT_PORT REMOTE_PORT TLS_CIPHER TLS_SESSION_ID TLS_VERSION
TRANSPORT_FAILURE_REASON WIRE_BYTES_RECEIVED WIRE_BYTES_SENT
"""

_UPSTREAM: Final = """
CLUSTER CLUSTER_RAW CONNECTION_ID CONNECTION_POOL_READY_DURATION HEADER_BYTES_RECEIVED HEADER_BYTES_SENT HOST HOST_NAME
HOST_NAME_WITHOUT_PORT LOCAL_ADDRESS LOCAL_ADDRESS_WITHOUT_PORT LOCAL_DNS_SAN LOCAL_PORT LOCAL_URI_SAN PEER_CERT
PEER_CERT_V_END PEER_CERT_V_START PEER_DNS_SAN PEER_IP_SAN PEER_ISSUER PEER_SUBJECT PEER_URI_SAN PROTOCOL
REMOTE_ADDRESS REMOTE_ADDRESS_WITHOUT_PORT REMOTE_PORT REQUEST_ATTEMPT_COUNT TLS_CIPHER TLS_SESSION_ID TLS_VERSION
TRANSPORT_FAILURE_REASON WIRE_BYTES_RECEIVED WIRE_BYTES_SENT
"""

_OTHERS: Final = """
BYTES_RECEIVED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS DURATION FILTER_CHAIN_NAME GRPC_STATUS
GRPC_STATUS_NUMBER HOSTNAME PROTOCOL REQUESTED_SERVER_NAME REQUEST_DURATION REQUEST_HEADERS_BYTES REQUEST_TX_DURATION
RESPONSE_CODE RESPONSE_CODE_DETAILS RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES
RESPONSE_TRAILERS_BYTES RESPONSE_TX_DURATION ROUNDTRIP_DURATION ROUTE_NAME START_TIME STREAM_ID TLS_JA3_FINGERPRINT
TRACE_ID UNIQUE_ID VIRTUAL_CLUSTER_NAME
"""

PLAIN: Final = frozenset(
    [f"DOWNSTREAM_{side}" for side in _SIDES.split()]
    + [f"UPSTREAM_{side}" for side in _UPSTREAM.split()]
    + _OTHERS.split()
)
"""Commands without arguments."""

_HEADER: Final = r"[A-Za-z0-9:_-]+(?:\?[A-Za-z0-9:_-]+)?"
_PATH: Final = r"[A-Za-z0-9._-]+(?::[A-Za-z0-9._-]+)*"
ARGUMENTS: Final = {
    "REQ": rf"\({_HEADER}\)(?::[0-9]{{1,9}})?",
    "RESP": rf"\({_HEADER}\)(?::[0-9]{{1,9}})?",
    "TRAILER": rf"\({_HEADER}\)(?::[0-9]{{1,9}})?",
    "ENVIRONMENT": r"\([A-Za-z_][A-Za-z0-9_]*\)",
    "QUERY_PARAM": r"\([A-Za-z0-9._-]+\)",
    "DYNAMIC_METADATA": rf"\({_PATH}\)",
    "CLUSTER_METADATA": rf"\({_PATH}\)",
    "UPSTREAM_METADATA": rf"\({_PATH}\)",
}
"""Commands with arguments, and what these may look like."""

_COMMAND: Final = re.compile(
    "%%|%(?:" + "|".join([*sorted(PLAIN), *(name + form for name, form in ARGUMENTS.items())]) + ")%"
)
_NEXT: Final = re.compile(r"%[^%]*%?")


def unknown_command(text: str) -> str | None:
    """The first thing in a header's value that Envoy, or this list, would not take as a command; None for none.

    `%%` is a percent sign.
    """
    rest = _COMMAND.sub("", text)
    found = _NEXT.search(rest)
    return found.group() if found else None


def literal(text: str) -> str:
    """A value that Envoy writes as it is."""
    return text.replace("%", "%%")
