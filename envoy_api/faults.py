"""What is wrong with a message given as plain data, each fault with its path."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from envoy_api.pool import EnvoyMessage, UnknownTypeError, class_for_url, descriptor_of, message_class, pool

Path = tuple[str | int, ...]

_EXAMPLES = {
    "google.protobuf.Duration": "a duration in seconds such as 1.5s",
    "google.protobuf.Timestamp": "a time such as 2030-01-02T03:04:05Z",
    "google.protobuf.FieldMask": "field names with commas between them",
    "google.protobuf.Struct": "a mapping",
    "google.protobuf.ListValue": "a list",
}
_IN_BASE64 = "bytes in base64"
_BASE64 = re.compile(r"([A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}")
"""RFC 4648, sections 4 and 5; ProtoJSON takes both alphabets, with or without the padding."""
OWN_FORMS = frozenset(_EXAMPLES) | {
    f"google.protobuf.{name}"
    for name in (
        *("Any", "Value"),
        *(f"{kind}Value" for kind in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String")),
        *("UInt32Value", "UInt64Value"),
    )
}
"""The types that JSON writes in a form of their own, not as a mapping of their fields."""
_KINDS = {
    **dict.fromkeys((FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT), "a number"),
    FieldDescriptor.CPPTYPE_INT32: "a whole number of 32 bits",
    FieldDescriptor.CPPTYPE_INT64: "a whole number of 64 bits",
    FieldDescriptor.CPPTYPE_UINT32: "a whole number from 0 to 4294967295",
    FieldDescriptor.CPPTYPE_UINT64: "a whole number of 64 bits, not negative",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_STRING: "a string",
}


class Fault(NamedTuple):
    """One thing that is wrong. `path` leads to it: keys as they were written, and list indices."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{path_text(self.path)}: {self.reason}" if self.path else self.reason


class InvalidMessageError(ValueError):
    """Data that is not a message of its type. `faults` are all that were found, in the data's order, one at least."""

    def __init__(self, type_name: str, faults: tuple[Fault, ...]) -> None:
        super().__init__(type_name, faults)
        self.type_name = type_name
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


def path_text(path: Path) -> str:
    """`resources[0].typed_config.foo`; a key that is no identifier goes in brackets and quotes."""
    text = ""
    for part in path:
        if isinstance(part, str) and part.removeprefix("@").isidentifier():
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]' if isinstance(part, str) else f"[{part}]"
    return text


def bytes_faults(kind: Descriptor, data: object, path: Path = ()) -> Iterator[Fault]:
    """Each value that is no base64, of data that protobuf takes: its parser skips what it cannot decode."""
    if kind.full_name == "google.protobuf.BytesValue":
        yield from _undecodable(data, path)
    elif not isinstance(data, Mapping):
        return
    elif kind.full_name == "google.protobuf.Any":
        if isinstance(url := data.get("@type"), str):
            inner = descriptor_of(class_for_url(url))
            own = inner.full_name in OWN_FORMS
            yield from bytes_faults(inner, data.get("value") if own else data, (*path, "value") if own else path)
    elif kind.full_name not in OWN_FORMS:
        for key, value in data.items():
            if (field := _field(kind, key)) is not None:
                yield from _field_bytes(field, value, (*path, key))


def _field_bytes(field: FieldDescriptor, value: Any, path: Path) -> Iterator[Fault]:
    items: Iterable[tuple[Path, Any]] = [(path, value)]
    if (entry := field.message_type) is not None and entry.GetOptions().map_entry:
        field = entry.fields_by_name["value"]
        items = [((*path, key), item) for key, item in value.items()] if isinstance(value, Mapping) else []
    elif isinstance(value, list | tuple):
        items = [((*path, index), item) for index, item in enumerate(value)]
    for place, item in items:
        if field.message_type is not None:
            yield from bytes_faults(field.message_type, item, place)
        elif field.type == FieldDescriptor.TYPE_BYTES:
            yield from _undecodable(item, place)


def _undecodable(value: object, path: Path) -> Iterator[Fault]:
    if isinstance(value, str) and (_BASE64.fullmatch(value) is None or len(value.rstrip("=")) % 4 == 1):
        yield Fault(path, f"expected {_IN_BASE64}, not {_shown(value)}")


def fill(empty: EnvoyMessage, data: object) -> Exception | None:
    """Parses data into a message; the error, if it cannot be."""
    try:
        json_format.ParseDict(data, empty, descriptor_pool=pool)  # type: ignore[arg-type]
    except Exception as error:  # of many kinds: it assumes that data has the shapes that JSON text for the type has
        return error
    return None


def message_faults(kind: Descriptor, data: object, path: Path) -> Iterator[Fault]:
    """Each fault of data meant as a message of this type. Data may be null nowhere but as a field's value."""
    if kind.full_name == "google.protobuf.Any":
        yield from _any_faults(data, path)
        return
    if kind.full_name in OWN_FORMS:
        if (reason := _refused(kind, data)) is not None:
            yield Fault(path, reason)
        return
    if not isinstance(data, Mapping):
        yield Fault(path, f"expected a mapping, the fields of {kind.full_name}, not {_shown(data)}")
        return
    oneofs: dict[str, str] = {}
    for key, value in data.items():
        here = (*path, key)
        if (field := _field(kind, key)) is None:
            yield Fault(here, f"no such field in {kind.full_name}{_hint(str(key), kind.fields_by_name)}")
            continue
        if value is None:
            continue
        if (oneof := field.containing_oneof) is not None:
            other = oneofs.setdefault(oneof.name, key)
            if other != key:
                yield Fault(here, f"only one of {other} and {key} may be set in {kind.full_name}")
        yield from _field_faults(field, value, here)


def _any_faults(data: object, path: Path) -> Iterator[Fault]:
    if not isinstance(data, Mapping):
        yield Fault(path, f"expected a mapping with @type, not {_shown(data)}")
        return
    if not data:
        return
    if not isinstance(url := data.get("@type"), str):
        yield Fault(path, "@type is missing: the type of this message, as type.googleapis.com/<full name>")
        return
    try:
        kind = descriptor_of(class_for_url(url))
    except UnknownTypeError as error:
        yield Fault((*path, "@type"), str(error))
        return
    rest = {key: value for key, value in data.items() if key != "@type"}
    if kind.full_name not in OWN_FORMS:
        yield from message_faults(kind, rest, path)
    elif rest.keys() != {"value"}:
        yield Fault(path, f"{kind.full_name} in an Any is written as @type and value")
    else:
        yield from message_faults(kind, rest["value"], (*path, "value"))


def _field_faults(field: FieldDescriptor, value: object, path: Path) -> Iterator[Fault]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        if not isinstance(value, Mapping):
            yield Fault(path, f"expected a mapping, not {_shown(value)}")
            return
        keys, values = kind.fields_by_name["key"], kind.fields_by_name["value"]
        for key, item in value.items():
            if not _accepts(keys, key):
                yield Fault((*path, key), f"expected {_wanted(keys)} as key")
            else:
                yield from _item_faults(values, item, (*path, key))
    elif field.is_repeated:
        if not isinstance(value, list | tuple):
            yield Fault(path, f"expected a list, not {_shown(value)}")
            return
        for index, item in enumerate(value):
            yield from _item_faults(field, item, (*path, index))
    else:
        yield from _item_faults(field, value, path)


def _item_faults(field: FieldDescriptor, value: object, path: Path) -> Iterator[Fault]:
    if field.message_type is not None:
        yield from message_faults(field.message_type, value, path)
    elif not _accepts(field, value):
        if (enum := field.enum_type) is not None and isinstance(value, str):
            yield Fault(path, f"no such value of {enum.full_name}{_hint(value, enum.values_by_name)}")
        else:
            yield Fault(path, f"expected {_wanted(field)}, not {_shown(value)}")


def _field(kind: Descriptor, key: object) -> FieldDescriptor | None:
    """The field of a key: its name as in the proto file, or in lowerCamelCase."""
    if not isinstance(key, str):
        return None
    return kind.fields_by_name.get(key) or kind.fields_by_camelcase_name.get(key)


def _refused(kind: Descriptor, data: object) -> str | None:
    """Why data is not a well-known type's JSON form; None when it is."""
    if fill(message_class(kind.full_name)(), data) is None:
        return None
    example = _EXAMPLES.get(kind.full_name)
    wrapped = kind.fields_by_name.get("value")
    return f"expected {example or (_wanted(wrapped) if wrapped else 'a value')}, not {_shown(data)}"


def _accepts(field: FieldDescriptor, value: object) -> bool:
    """Whether protobuf takes a scalar (one element of it, if repeated) as this field's value."""
    assert field.containing_type is not None  # only extensions have none
    owner = message_class(field.containing_type.full_name)()
    return value is not None and fill(owner, {field.name: [value] if field.is_repeated else value}) is None


def _wanted(field: FieldDescriptor) -> str:
    if (enum := field.enum_type) is not None:
        return f"a value of {enum.full_name}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _IN_BASE64
    return _KINDS[field.cpp_type]


def _hint(name: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(name.casefold(), {each.casefold(): each for each in known}, n=1)
    if close:
        return f", did you mean {next(each for each in known if each.casefold() == close[0])}?"
    return f" (it has {', '.join(known)})" if 0 < len(known) <= 8 else ""


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
