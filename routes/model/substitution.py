"""Envoy's substitutions in header values (`%REQ(x-id)%`), checked so that no Envoy refuses the route table over one.

The commands are those that every supported Envoy takes in a header value (in Envoy's documentation:
configuration/observability/access_log/usage), tried with the oldest and the newest.
"""

import re
from typing import Final

from operator_files.validate import did_you_mean

_HEADER = r":?[A-Za-z0-9!#$&'*+.^_`|~-]+"
_HEADERS = rf"{_HEADER}(\?{_HEADER})?"
_PARTS = r"[^:()%]+(:[^:()%]+)*"
_TIME = r"[^()]+"

_WITH_ARGUMENT: Final = {
    "REQ": _HEADERS,
    "RESP": _HEADERS,
    "TRAILER": _HEADERS,
    "QUERY_PARAM": r"[^()%:]+",
    "ENVIRONMENT": r"[^()%:]+",
    "DYNAMIC_METADATA": _PARTS,
    "CLUSTER_METADATA": _PARTS,
    "UPSTREAM_METADATA": _PARTS,
    "METADATA": rf"(DYNAMIC|CLUSTER|ROUTE|UPSTREAM_HOST|LISTENER|VIRTUAL_HOST|LISTENER_FILTER_CHAIN):{_PARTS}",
    "FILTER_STATE": r"[^:()%]+(:(PLAIN|TYPED))?",
    "UPSTREAM_FILTER_STATE": r"[^:()%]+(:(PLAIN|TYPED))?",
}
_WITH_OR_WITHOUT: Final = {
    "START_TIME": _TIME,
    "START_TIME_LOCAL": _TIME,
    "EMIT_TIME": _TIME,
    "EMIT_TIME_LOCAL": _TIME,
}
_WITH_LENGTH: Final = _WITH_ARGUMENT.keys() - {"CLUSTER_METADATA", "DYNAMIC_METADATA", "UPSTREAM_METADATA"}
_TLS_SIDES: Final = {
    "DOWNSTREAM": (
        "LOCAL_URI_SAN LOCAL_DNS_SAN LOCAL_IP_SAN LOCAL_EMAIL_SAN LOCAL_OTHERNAME_SAN LOCAL_SUBJECT PEER_URI_SAN "
        "PEER_DNS_SAN PEER_IP_SAN PEER_EMAIL_SAN PEER_OTHERNAME_SAN PEER_SUBJECT PEER_ISSUER PEER_SERIAL PEER_CERT "
        "PEER_CERT_V_START PEER_CERT_V_END PEER_FINGERPRINT_1 PEER_FINGERPRINT_256 PEER_CHAIN_FINGERPRINTS_1 "
        "PEER_CHAIN_FINGERPRINTS_256 PEER_CHAIN_SERIALS TLS_CIPHER TLS_VERSION TLS_SESSION_ID "
        "TRANSPORT_FAILURE_REASON"
    ),
    "UPSTREAM": (
        "LOCAL_URI_SAN LOCAL_DNS_SAN LOCAL_IP_SAN PEER_URI_SAN PEER_DNS_SAN PEER_IP_SAN PEER_SUBJECT PEER_ISSUER "
        "PEER_CERT PEER_CERT_V_START PEER_CERT_V_END TLS_CIPHER TLS_VERSION TLS_SESSION_ID TRANSPORT_FAILURE_REASON"
    ),
}
_BYTES: Final = (
    "WIRE_BYTES_SENT WIRE_BYTES_RECEIVED HEADER_BYTES_SENT HEADER_BYTES_RECEIVED DECOMPRESSED_HEADER_BYTES_SENT "
    "DECOMPRESSED_HEADER_BYTES_RECEIVED"
)
_ADDRESSES: Final = {
    "DOWNSTREAM": ("LOCAL", "DIRECT_LOCAL", "REMOTE", "DIRECT_REMOTE"),
    "UPSTREAM": ("LOCAL", "REMOTE"),
}
_OTHERS: Final = """
    BYTES_RECEIVED BYTES_SENT BYTES_RETRANSMITTED PACKETS_RETRANSMITTED PROTOCOL UPSTREAM_PROTOCOL RESPONSE_CODE
    RESPONSE_CODE_DETAILS CONNECTION_TERMINATION_DETAILS DURATION REQUEST_DURATION REQUEST_TX_DURATION
    RESPONSE_DURATION RESPONSE_TX_DURATION ROUNDTRIP_DURATION DOWNSTREAM_HANDSHAKE_DURATION RESPONSE_FLAGS
    UPSTREAM_CONNECTION_POOL_READY_DURATION RESPONSE_FLAGS_LONG UPSTREAM_HOST UPSTREAM_HOST_NAME UPSTREAM_CLUSTER
    UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_CLUSTER_RAW UPSTREAM_CONNECTION_ID UPSTREAM_REQUEST_ATTEMPT_COUNT
    TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT REQUESTED_SERVER_NAME HOSTNAME FILTER_CHAIN_NAME VIRTUAL_CLUSTER_NAME
    ROUTE_NAME UNIQUE_ID STREAM_ID TRACE_ID GRPC_STATUS GRPC_STATUS_NUMBER CONNECTION_ID PATH CUSTOM_FLAGS
"""
_PLAIN: Final = frozenset(
    [
        *_OTHERS.split(),
        *(f"{side}_{name}" for side, names in _TLS_SIDES.items() for name in names.split()),
        *(f"{side}_{name}" for side in _ADDRESSES for name in _BYTES.split()),
        *(
            f"{side}_{end}_{what}"
            for side, ends in _ADDRESSES.items()
            for end in ends
            for what in ("ADDRESS", "ADDRESS_WITHOUT_PORT", "PORT")
        ),
    ]
)
_COMMANDS: Final = _PLAIN | _WITH_ARGUMENT.keys() | _WITH_OR_WITHOUT.keys()

_PIECE = re.compile(r"%%|%(?P<name>[A-Z0-9_]+)(?:\((?P<argument>.*?)\))?(?::(?P<length>[0-9]{1,6}))?%|%")


def fault_of(value: str) -> tuple[str, str] | None:
    """What is wrong with the first bad substitution, and a fix; None when all are good."""
    for piece in _PIECE.finditer(value):
        if piece[0] == "%%":
            continue
        if piece["name"] is None:
            return "a single `%` begins a command to Envoy, and this is none", "write `%%` for a percent sign"
        if (fault := _command_fault(piece["name"], piece["argument"], piece["length"])) is not None:
            return fault
    return None


def _command_fault(name: str, argument: str | None, length: str | None) -> tuple[str, str] | None:
    if name not in _COMMANDS:
        return f"Envoy knows no `%{name}%`", did_you_mean(name, _COMMANDS) if len(name) > 2 else ""
    pattern = _WITH_ARGUMENT.get(name) or _WITH_OR_WITHOUT.get(name)
    if argument is None and name in _WITH_ARGUMENT:
        return f"`%{name}%` needs an argument", f"write `%{name}(...)%`"
    if argument is not None and (pattern is None or not re.fullmatch(pattern, argument)):
        what = "takes no argument" if pattern is None else f"does not take `{argument}`"
        return f"`%{name}%` {what}", f"write `%{name}%`" if pattern is None else ""
    if length is not None and name not in _WITH_LENGTH:
        return f"`%{name}%` cannot be cut to a length", f"leave out `:{length}`"
    return None


def examples() -> list[str]:
    """One use of every command, for trying them with an Envoy."""
    arguments = dict.fromkeys(_WITH_ARGUMENT, "x") | {"METADATA": "ROUTE:x:y", "REQ": ":path?x-y"}
    times = [f"%{name}(%Y-%m-%d)%" for name in sorted(_WITH_OR_WITHOUT)]
    cut = dict.fromkeys(_WITH_LENGTH, ":9")
    return [f"%{name}({arguments[name]}){cut.get(name, '')}%" for name in sorted(arguments)] + times + [
        f"%{name}%" for name in sorted(_PLAIN | _WITH_OR_WITHOUT.keys())
    ]  # fmt: skip
