"""Messages from and to the form that Envoy's YAML and JSON have."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from envoy_api.pool import EnvoyMessage, message_class, pool


def parse(kind: str | type[EnvoyMessage], data: Mapping[str, Any]) -> EnvoyMessage:
    cls = message_class(kind) if isinstance(kind, str) else kind
    made = cls()
    json_format.ParseDict(dict(data), made, descriptor_pool=pool)
    return made


def to_dict(value: Message) -> dict[str, Any]:
    return json_format.MessageToDict(value, preserving_proto_field_name=True, descriptor_pool=pool)
