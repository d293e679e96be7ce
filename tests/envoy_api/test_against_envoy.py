"""Our descriptors against those that a real Envoy carries in its binary: names, numbers, types, enums' values.

They show what betterproto2's naming could lose (case, keywords, prefixes) and neither runtime would notice.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

import envoy
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError

import envoy_api

NEWER_IN_ENVOY = {"envoy.extensions.filters.http.mcp_json_rest_bridge.v3.ServerInfo"}
"""Work in progress that changed between the two versions in a way that Envoy's rules forbid for anything stable."""
FILE_START = re.compile(rb"\n([\x01-\x7f])((?:envoy|xds)/[\w/.-]+\.proto)\x12")
SYNTAX_END = b"b\x06proto3"


def embedded_files(binary: Path) -> Iterator[FileDescriptorProto]:
    """The FileDescriptorProtos in a C++ protobuf program: each begins with its name and ends with its syntax."""
    with binary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in FILE_START.finditer(data):
            if match[1][0] != len(match[2]):
                continue
            end = data.find(SYNTAX_END, match.end()) + len(SYNTAX_END)
            try:
                yield FileDescriptorProto.FromString(data[match.start() : end])
            except DecodeError:
                continue


def types_of(
    prefix: str, parent: FileDescriptorProto | DescriptorProto
) -> Iterator[tuple[str, DescriptorProto | EnumDescriptorProto]]:
    for enum in parent.enum_type:
        yield f"{prefix}.{enum.name}", enum
    for message in parent.message_type if isinstance(parent, FileDescriptorProto) else parent.nested_type:
        if not message.options.map_entry:
            yield f"{prefix}.{message.name}", message
            yield from types_of(f"{prefix}.{message.name}", message)


@pytest.fixture(scope="module")
def envoys() -> dict[str, DescriptorProto | EnumDescriptorProto]:
    binary = next(path for path in Path(envoy.__file__).parent.rglob("envoy") if path.is_file())
    return {name: it for file in embedded_files(binary) for name, it in types_of(file.package, file)}


def test_messages_have_the_fields_that_envoy_has(envoys: dict[str, DescriptorProto | EnumDescriptorProto]) -> None:
    ours = set(envoy_api.all_type_names()) - NEWER_IN_ENVOY
    compared = 0
    for name, theirs in envoys.items():
        if name not in ours or not isinstance(theirs, DescriptorProto):
            continue
        mine = DescriptorProto()
        envoy_api.message_class(name).DESCRIPTOR.CopyToProto(mine)
        known = {field.number: field for field in mine.field}
        for field in theirs.field:
            if (other := known.get(field.number)) is None:
                continue  # Envoy is newer
            compared += 1
            for attribute in ("name", "type", "type_name", "label", "proto3_optional"):
                assert getattr(other, attribute) == getattr(field, attribute), f"{name}.{field.name}: {attribute}"
            assert other.HasField("oneof_index") == field.HasField("oneof_index"), f"{name}.{field.name}"
            if field.HasField("oneof_index"):
                assert mine.oneof_decl[other.oneof_index].name == theirs.oneof_decl[field.oneof_index].name
    assert compared > 4000


def test_enums_have_the_names_that_envoy_has(envoys: dict[str, DescriptorProto | EnumDescriptorProto]) -> None:
    compared = 0
    for name, theirs in envoys.items():
        if not isinstance(theirs, EnumDescriptorProto):
            continue
        try:
            mine = envoy_api.pool.FindEnumTypeByName(name)
        except KeyError:
            continue  # Envoy is newer
        compared += 1
        values = {value.name: value.number for value in theirs.value}
        assert {value.name: value.number for value in mine.values}.items() <= values.items(), name
    assert compared > 150
