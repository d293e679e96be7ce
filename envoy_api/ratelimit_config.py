"""envoyproxy/ratelimit's own messages, in which it takes its limits over xDS. They are no part of Envoy's API.

Source: api/ratelimit/config/ratelimit/v3/rls_conf.proto of github.com/envoyproxy/ratelimit.
"""

from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

PACKAGE: Final = "ratelimit.config.ratelimit.v3"

_STRUCT: Final = "google.protobuf.Struct"
_UNITS: Final = ("UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK")
_MESSAGES: Final = {
    # message: field, type, number; a type in brackets is repeated
    "RateLimitConfig": (("name", "string", 1), ("domain", "string", 2), ("descriptors", "[RateLimitDescriptor]", 3)),
    "RateLimitDescriptor": (
        ("key", "string", 1),
        ("value", "string", 2),
        ("rate_limit", "RateLimitPolicy", 3),
        ("descriptors", "[RateLimitDescriptor]", 4),
        ("shadow_mode", "bool", 5),
        ("detailed_metric", "bool", 6),
        ("quota_mode", "bool", 7),
        ("metadata", _STRUCT, 8),
    ),
    "RateLimitPolicy": (
        ("unit", "RateLimitUnit", 1),
        ("requests_per_unit", "uint32", 2),
        ("unlimited", "bool", 3),
        ("name", "string", 4),
        ("replaces", "[RateLimitReplace]", 5),
    ),
    "RateLimitReplace": (("name", "string", 1),),
}
_SCALARS: Final = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
}


def declared() -> FileDescriptorProto:
    """The file that declares them."""
    file = FileDescriptorProto(
        name=f"{PACKAGE.replace('.', '/')}/rls_conf.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=["google/protobuf/struct.proto"],
    )
    unit = file.enum_type.add(name="RateLimitUnit")
    for number, name in enumerate(_UNITS):
        unit.value.add(name=name, number=number)
    for name, fields in _MESSAGES.items():
        body = file.message_type.add(name=name)
        for field, kind, number in fields:
            _add(body, field, kind, number)
    return file


def _add(body: DescriptorProto, name: str, kind: str, number: int) -> None:
    one = kind.strip("[]")
    label = FieldDescriptorProto.LABEL_OPTIONAL if one == kind else FieldDescriptorProto.LABEL_REPEATED
    added = body.field.add(name=name, number=number, label=label)
    if one in _SCALARS:
        added.type = _SCALARS[one]
    else:
        enum = one == "RateLimitUnit"
        added.type = FieldDescriptorProto.TYPE_ENUM if enum else FieldDescriptorProto.TYPE_MESSAGE
        added.type_name = f".{one}" if one == _STRUCT else f".{PACKAGE}.{one}"
