"""Envoy's v3 API (and what it imports) as protobuf classes: envoy-data-plane's schema at protobuf's own speed."""

from envoy_api.faults import Fault, InvalidMessageError, path_text
from envoy_api.json_form import parse, to_dict
from envoy_api.pool import (
    TYPE_URL_PREFIX,
    EnvoyMessage,
    UnknownTypeError,
    all_type_names,
    class_for_url,
    encode,
    message,
    message_class,
    pack,
    pool,
    type_url,
    unpack,
)

__all__ = [
    "TYPE_URL_PREFIX",
    "EnvoyMessage",
    "Fault",
    "InvalidMessageError",
    "UnknownTypeError",
    "all_type_names",
    "class_for_url",
    "encode",
    "message",
    "message_class",
    "pack",
    "parse",
    "path_text",
    "pool",
    "to_dict",
    "type_url",
    "unpack",
]
