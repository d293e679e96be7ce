"""Envoy's substitution commands (`%REQ(x-user)%`) in header values.

Envoy refuses a whole route table over one command that it does not take, so a value is checked before it is used.
Listed is what every supported release takes, 1.36 and later. Commands whose arguments are languages of their own
(CEL, COMMON_DURATION) are left out, because whether one is valid cannot be told from outside.
Source: Envoy's documentation, "Substitution format strings"; the tests hold the list against real Envoys.
"""

import re
from typing import Final

_BOTH_SIDES: Final = """
    DECOMPRESSED_HEADER_BYTES_RECEIVED DECOMPRESSED_HEADER_BYTES_SENT HEADER_BYTES_RECEIVED HEADER_BYTES_SENT
    LOCAL_ADDRESS LOCAL_ADDRESS_WITHOUT_PORT LOCAL_DNS_SAN LOCAL_IP_SAN LOCAL_PORT LOCAL_URI_SAN PEER_CERT
    PEER_CERT_V_END PEER_CERT_V_START PEER_DNS_SAN PEER_IP_SAN PEER_ISSUER PEER_SUBJECT PEER_URI_SAN REMOTE_ADDRESS
    REMOTE_ADDRESS_WITHOUT_PORT REMOTE_PORT TLS_CIPHER TLS_SESSION_ID TLS_VERSION TRANSPORT_FAILURE_REASON
    WIRE_BYTES_RECEIVED WIRE_BYTES_SENT
"""
_DOWNSTREAM: Final = """
    DIRECT_LOCAL_ADDRESS DIRECT_LOCAL_ADDRESS_WITHOUT_PORT DIRECT_LOCAL_PORT DIRECT_REMOTE_ADDRESS
    DIRECT_REMOTE_ADDRESS_WITHOUT_PORT DIRECT_REMOTE_PORT HANDSHAKE_DURATION LOCAL_EMAIL_SAN LOCAL_OTHERNAME_SAN
    LOCAL_SUBJECT PEER_CHAIN_FINGERPRINTS_1 PEER_CHAIN_FINGERPRINTS_256 PEER_CHAIN_SERIALS PEER_EMAIL_SAN
    PEER_FINGERPRINT_1 PEER_FINGERPRINT_256 PEER_OTHERNAME_SAN PEER_SERIAL
"""
_UPSTREAM: Final = """
    CLUSTER CLUSTER_RAW CONNECTION_ID CONNECTION_POOL_READY_DURATION HOST HOST_NAME HOST_NAME_WITHOUT_PORT PROTOCOL
    REQUEST_ATTEMPT_COUNT
"""
_OTHERS: Final = """
    BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS CUSTOM_FLAGS DURATION
    EMIT_TIME EMIT_TIME_LOCAL FILTER_CHAIN_NAME GRPC_STATUS GRPC_STATUS_NUMBER HOSTNAME PACKETS_RETRANSMITTED PATH
    PROTOCOL REQUESTED_SERVER_NAME REQUEST_DURATION REQUEST_HEADERS_BYTES REQUEST_TX_DURATION RESPONSE_CODE
    RESPONSE_CODE_DETAILS RESPONSE_DURATION RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES
    RESPONSE_TRAILERS_BYTES RESPONSE_TX_DURATION ROUNDTRIP_DURATION ROUTE_NAME START_TIME START_TIME_LOCAL STREAM_ID
    TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID VIRTUAL_CLUSTER_NAME
"""

PLAIN: Final = frozenset(
    [
        *_OTHERS.split(),
        *(f"DOWNSTREAM_{name}" for name in (_BOTH_SIDES + _DOWNSTREAM).split()),
        *(f"UPSTREAM_{name}" for name in (_BOTH_SIDES + _UPSTREAM).split()),
    ]
)
"""Commands that may stand without an argument."""

_HEADER: Final = r":?[A-Za-z0-9!#$&'*+.^_`|~-]+"
_HEADERS: Final = rf"\({_HEADER}(?:\?{_HEADER})?\)"
_PATH: Final = r"[^:()%]+(?::[^:()%]+)*"
_KEY: Final = r"\([^:()%]+\)"
_CUT: Final = r"(?::[0-9]{1,6})?"
_TIME: Final = r"\([^()]+\)"
_KINDS: Final = "DYNAMIC|CLUSTER|ROUTE|UPSTREAM_HOST|LISTENER|VIRTUAL_HOST|LISTENER_FILTER_CHAIN"
_STATE: Final = rf"\([^:()%]+(?::(?:PLAIN|TYPED))?\){_CUT}"

ARGUMENTS: Final = {
    "REQ": _HEADERS + _CUT,
    "RESP": _HEADERS + _CUT,
    "TRAILER": _HEADERS + _CUT,
    "QUERY_PARAM": _KEY + _CUT,
    "ENVIRONMENT": _KEY + _CUT,
    "METADATA": rf"\((?:{_KINDS}):{_PATH}\){_CUT}",
    "DYNAMIC_METADATA": rf"\({_PATH}\)",
    "CLUSTER_METADATA": rf"\({_PATH}\)",
    "UPSTREAM_METADATA": rf"\({_PATH}\)",
    "FILTER_STATE": _STATE,
    "UPSTREAM_FILTER_STATE": _STATE,
    "START_TIME": _TIME,
    "START_TIME_LOCAL": _TIME,
    "EMIT_TIME": _TIME,
    "EMIT_TIME_LOCAL": _TIME,
}
"""Commands with arguments, and what may stand between the command's name and the closing `%`."""

COMMANDS: Final = PLAIN | ARGUMENTS.keys()

# A format of times has percent signs of its own, so an argument reaches to the first bracket that closes it.
_PIECE: Final = re.compile(r"%%|%(?P<name>[A-Z0-9_]+)(?P<rest>(?:\(.*?\))?(?::[0-9]+)?)%|%[^%]*%?", re.DOTALL)


def unknown_command(text: str) -> str | None:
    """The first thing in a header's value that Envoy, or this list, would not take as a command; None for none.

    `%%` is a percent sign.
    """
    return next((piece[0] for piece in _PIECE.finditer(text) if piece[0] != "%%" and not _is_known(piece)), None)


def _is_known(piece: re.Match[str]) -> bool:
    name, rest = piece["name"], piece["rest"]
    if not rest:
        return name in PLAIN
    return name in ARGUMENTS and re.fullmatch(ARGUMENTS[name], rest) is not None


def literal(text: str) -> str:
    """A value that Envoy writes as it is."""
    return text.replace("%", "%%")
