"""What envoy-data-plane's generated dataclasses say about Envoy's messages, as protobuf declarations.

Every dataclass field carries its number, type, oneof, map and wrapper as metadata, and its class is registered under
the proto's full name. So a package's Python module is enough to write the declarations that protoc would have read.
Three things are not in it and are derived: a nested enum's parent (from the class name), a file's boundaries (see
`envoy_api.files`), and the well-known types, which are protobuf's own.
"""

import dataclasses
import importlib
import keyword
import re
import warnings
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import betterproto2
from betterproto2 import FieldMetadata
from envoy_data_plane.message_pool import default_message_pool
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto
from pydantic.warnings import PydanticDeprecationWarning

ROOT = "envoy_data_plane"
WELL_KNOWN = "google.protobuf"

_SCALARS: dict[str, FieldDescriptorProto.Type.ValueType] = {
    name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    for name in (
        *("bool", "bytes", "double", "fixed32", "fixed64", "float", "int32", "int64"),
        *("sfixed32", "sfixed64", "sint32", "sint64", "string", "uint32", "uint64"),
    )
}
_ANNOTATION = re.compile(r"(?:list\[|dict\[\w+, )?(?:(?P<module>\w+)\.)?(?P<name>\w+)\]?(?: \| None)?")

_ENUM_PATHS = {
    "ClientConfigStatus": "ClientConfigStatus",
    "HealthCheckFailureType": "HealthCheckFailureType",
    "HttpAccessLogEntryHttpVersion": "HTTPAccessLogEntry.HTTPVersion",
    "MetricType": "MetricType",
    "ProxyProtocolPassThroughTlVsPassTlVsMatchType": "ProxyProtocolPassThroughTLVs.PassTLVsMatchType",
    "RateLimitXRateLimitHeadersRfcVersion": "RateLimit.XRateLimitHeadersRFCVersion",
    "RetryPolicyResetHeaderFormat": "RetryPolicy.ResetHeaderFormat",
    "TlsPropertiesTlsVersion": "TLSProperties.TLSVersion",
    "XRateLimitHeadersRfcVersion": "XRateLimitHeadersRFCVersion",
}
"""Enums whose class name does not tell their path: it is re-cased, or begins like a message that is no parent."""


class Declaration(NamedTuple):
    """A top-level message with all that is nested in it, or a top-level enum."""

    body: DescriptorProto | EnumDescriptorProto
    needs: frozenset[str]
    """Full names of the top-level types that its fields refer to; its own among them if it is recursive."""


class Package:
    """The messages and enums of one proto package, by their names within it (`Cluster.EdsClusterConfig`)."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name = name
        self.messages: dict[str, type] = {}
        self.enums: dict[str, type[betterproto2.Enum]] = {}
        own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
        for value in own:
            if (url := default_message_pool.type_to_url.get(value)) is not None:
                self.messages[url.rpartition("/")[2].removeprefix(f"{name}.")] = value
        parents = {cls.__name__: path for path, cls in self.messages.items()}
        for value in own:
            if isinstance(value, type) and issubclass(value, betterproto2.Enum):
                self.enums[_enum_path(value.__name__, parents)] = value
        self.paths: dict[type, str] = {cls: path for path, cls in (*self.messages.items(), *self.enums.items())}

    def declare(self, top: str) -> Declaration:
        """The declaration of the top-level type of that name. Raises KeyError when there is none."""
        if (enum := self.enums.get(top)) is not None:
            return Declaration(_enum(top, enum), frozenset())
        root = DescriptorProto(name=top)
        built = {top: root}
        needs: set[str] = set()
        _add_fields(root, f"{self.name}.{top}", self.messages[top], needs)
        # Sorted, a parent comes before what is nested in it.
        for path in sorted(path for path in (*self.messages, *self.enums) if path.startswith(f"{top}.")):
            parent, _, name = path.rpartition(".")
            if path in self.enums:
                built[parent].enum_type.append(_enum(name, self.enums[path]))
            else:
                built[path] = built[parent].nested_type.add(name=name)
                _add_fields(built[path], f"{self.name}.{path}", self.messages[path], needs)
        return Declaration(root, frozenset(needs))


@cache
def package(name: str) -> Package:
    """The package of that proto name, loaded. Raises KeyError when envoy-data-plane has none.

    Loading is what a process pays once: 0.3 s for what a server needs (clusters, endpoints, listeners, the HTTP
    connection manager, routes, discovery), nearly all of it in pydantic, which envoy-data-plane runs over every
    dataclass; declarations and descriptors take a tenth of that. A cache of descriptors on disk would save it, but
    wants a place to write and can go stale: not worth 0.3 s a start.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise KeyError(name)
    try:
        with warnings.catch_warnings():
            # Its generated validators are written in a way that pydantic wants to drop one day.
            warnings.simplefilter("ignore", PydanticDeprecationWarning)
            module = importlib.import_module(f"{ROOT}.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{ROOT}.{name}".startswith(error.name):
            raise
        raise KeyError(name) from None
    return Package(name, module)


def split(full_name: str) -> tuple[str, str]:
    """Package and name within it: packages are in lower case, types are not, everywhere in Envoy's API."""
    parts = full_name.split(".")
    first = next((i for i, part in enumerate(parts) if part[:1].isupper()), len(parts))
    return ".".join(parts[:first]), ".".join(parts[first:])


def top_level(full_name: str) -> str:
    """The full name of the outermost type that a type is nested in; itself when it is not."""
    name, path = split(full_name)
    return f"{name}.{path.partition('.')[0]}"


def full_name_of(cls: type) -> str:
    """The proto's full name of a generated message or enum class."""
    name = cls.__module__.removeprefix(f"{ROOT}.")
    return f"{name}.{package(name).paths[cls]}"


def _enum_path(class_name: str, parents: dict[str, str]) -> str:
    """Where an enum is declared: in the message whose class name its own begins with, the longest such.

    Messages are registered under their proto names, enums are not; a class name is the concatenation of the names it
    is nested in. Only error texts show an enum's name, Envoy's configuration never does.
    """
    if (known := _ENUM_PATHS.get(class_name)) is not None:
        return known
    parent = max((name for name in parents if class_name.startswith(name)), key=len, default="")
    return f"{parents[parent]}.{class_name[len(parent) :]}" if parent else class_name


def _enum(name: str, cls: type[betterproto2.Enum]) -> EnumDescriptorProto:
    # betterproto2 strips a prefix that all names share, and keeps the full ones aside.
    numbers = dict(cls.betterproto_renamed_proto_names_to_value())
    renamed = set(numbers.values())
    numbers.update((member, int(value)) for member, value in cls.__members__.items() if value not in renamed)
    enum = EnumDescriptorProto(name=name)
    # proto3 wants the zero first; the order means nothing else.
    for proto_name, number in sorted(numbers.items(), key=lambda item: (item[1] != 0, item[1])):
        enum.value.add(name=proto_name, number=number)
    if len({value.number for value in enum.value}) < len(enum.value):
        enum.options.allow_alias = True
    return enum


def _add_fields(message: DescriptorProto, full_name: str, cls: type, needs: set[str]) -> None:
    optionals: list[FieldDescriptorProto] = []
    oneofs: dict[str, int] = {}
    for name, meta, target in _fields(cls):
        field = message.field.add(name=name, number=meta.number)
        if meta.map_meta is not None:
            entry = message.nested_type.add(name=_entry_name(name))
            entry.options.map_entry = True
            key, value = meta.map_meta
            _set_type(entry.field.add(name="key", number=1), key, None, needs)
            _set_type(entry.field.add(name="value", number=2), value, target, needs)
            field.type = FieldDescriptorProto.TYPE_MESSAGE
            field.type_name = f".{full_name}.{entry.name}"
        else:
            _set_type(field, meta, target, needs)
        if meta.repeated or meta.map_meta is not None:
            field.label = FieldDescriptorProto.LABEL_REPEATED
        elif meta.group is not None:
            if meta.group not in oneofs:
                oneofs[meta.group] = len(message.oneof_decl)
                message.oneof_decl.add(name=meta.group)
            field.oneof_index = oneofs[meta.group]
        elif meta.optional and meta.proto_type != "message":  # a message's presence need not be declared
            optionals.append(field)
    for field in optionals:  # their synthetic oneofs come after all real ones (descriptor.proto, proto3_optional)
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def _fields(cls: type) -> Iterator[tuple[str, FieldMetadata, type | None]]:
    """Name, metadata and (for messages and enums, of map values too) the class of each field."""
    module = importlib.import_module(cls.__module__)
    for field in dataclasses.fields(cls):
        meta = FieldMetadata.get(field)
        kind = meta.map_meta[1] if meta.map_meta is not None else meta
        target: Any = None
        if kind.unwrap is not None:
            target = kind.unwrap()
        elif kind.proto_type in ("message", "enum"):
            # The annotation is read by hand: typing.get_type_hints takes 20 times as long.
            if (match := _ANNOTATION.fullmatch(str(field.type))) is None:
                raise TypeError(f"{cls.__name__}.{field.name}: cannot read the annotation {field.type!r}")
            namespace = getattr(module, match["module"]) if match["module"] else module
            target = getattr(namespace, match["name"])
        bare = field.name.removesuffix("_")
        yield (bare if keyword.iskeyword(bare) else field.name), meta, target


def _set_type(field: FieldDescriptorProto, meta: FieldMetadata, target: type | None, needs: set[str]) -> None:
    field.label = FieldDescriptorProto.LABEL_OPTIONAL
    if target is None:
        field.type = _SCALARS[meta.proto_type]
        return
    is_enum = meta.proto_type == "enum"
    field.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
    name = full_name_of(target)
    field.type_name = f".{name}"
    needs.add(top_level(name))


def _entry_name(field_name: str) -> str:
    """protoc's name for a map field's entry type (`typed_per_filter_config` -> `TypedPerFilterConfigEntry`)."""
    return "".join(part[:1].upper() + part[1:] for part in field_name.split("_")) + "Entry"
