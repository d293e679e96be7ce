"""Messages from and to plain data in the form that Envoy's YAML and JSON have."""

from collections.abc import Mapping
from math import copysign
from typing import Any, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from envoy_api.faults import OWN_FORMS, Fault, InvalidMessageError, bytes_faults, fill, message_faults
from envoy_api.pool import EnvoyMessage, class_for_url, descriptor_of, message_class, pool


def parse(kind: str | type[EnvoyMessage], data: Mapping[str, Any]) -> EnvoyMessage:
    """The message that the data describes, as protobuf's JSON mapping has it.

    `kind` is a full name or a class. Field names are the proto's or lowerCamelCase ones, enums are names or numbers,
    an Any is a mapping with @type among the inner message's fields; null is as if it were not there.

    Raises UnknownTypeError for an unknown `kind`, and InvalidMessageError with every fault and its path:
    `resources[0].typed_config.foo: no such field in envoy.…HttpConnectionManager`.
    """
    made = (message_class(kind) if isinstance(kind, str) else kind)()
    if (error := fill(made, data)) is not None:
        # protobuf stops at the first fault, and tells its place in prose only.
        kind_of = descriptor_of(made)
        faults = tuple(message_faults(kind_of, data, ())) or (Fault((), str(error)),)
        raise InvalidMessageError(kind_of.full_name, faults) from error
    if faults := tuple(bytes_faults(descriptor_of(made), data)):
        raise InvalidMessageError(made.DESCRIPTOR.full_name, faults)
    return made


def to_dict(value: Message) -> dict[str, Any]:
    """The message as plain data: proto field names in the proto's order, map keys sorted, each Any expanded.

    Parses back to an equal message. Raises TypeError when an Any holds a type that this API lacks.
    """
    data = json_format.MessageToDict(
        value, preserving_proto_field_name=True, descriptor_pool=pool, unquote_int64_if_possible=True
    )
    return cast("dict[str, Any]", _with_sorted_maps(descriptor_of(value), data))


def _with_sorted_maps(kind: Descriptor, data: Any) -> Any:
    """The same data with the keys of maps (which protobuf keeps in no order) sorted."""
    if kind.full_name == "google.protobuf.Any" and "@type" in data:
        inner = descriptor_of(class_for_url(data["@type"]))
        if inner.full_name in OWN_FORMS:
            return {**data, "value": _with_sorted_maps(inner, data["value"])}
        return _with_sorted_maps(inner, data)
    if kind.file.name == "google/protobuf/struct.proto":
        return _plain(data)
    if not isinstance(data, dict):
        return data
    return {name: _sorted_field(kind, name, value) for name, value in data.items()}


def _sorted_field(owner: Descriptor, name: str, value: Any) -> Any:
    field = owner.fields_by_name.get(name)
    if field is None or (kind := field.message_type) is None:
        return value
    if kind.GetOptions().map_entry:
        inner = kind.fields_by_name["value"].message_type
        return {key: _with_sorted_maps(inner, value[key]) if inner else value[key] for key in sorted(value)}
    if field.is_repeated:
        return [_with_sorted_maps(kind, item) for item in value]
    return _with_sorted_maps(kind, value)


def _plain(data: Any) -> Any:
    """A struct's data with sorted keys, and whole numbers (it knows only doubles) without a fraction.

    Minus zero stays what it is: no integer is.
    """
    if isinstance(data, dict):
        return {key: _plain(data[key]) for key in sorted(data)}
    if isinstance(data, list):
        return [_plain(item) for item in data]
    if isinstance(data, float) and data.is_integer() and abs(data) < 2**53:
        return int(data) if data or copysign(1.0, data) > 0 else data
    return data
