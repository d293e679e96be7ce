"""Declarations gathered into proto files, lazily: what protobuf's descriptor pool asks for when it lacks a type.

A proto file may not import in a circle, messages may refer to each other in one. So the files here are the strongly
connected components of the top-level types: one type each, or a few that need each other (`ListMatcher` and
`ValueMatcher`).
"""

import importlib

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from envoy_api import ratelimit_config
from envoy_api.schema import WELL_KNOWN, Declaration, package, split, top_level

_WELL_KNOWN_MODULES = (
    *("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context"),
    *("struct", "timestamp", "type", "wrappers"),
)


class Files:
    """A descriptor database (`google.protobuf.descriptor_database`'s interface) over envoy-data-plane's schema, and
    what is declared here beside it."""

    def __init__(self) -> None:
        self._by_name: dict[str, FileDescriptorProto] = {}
        self._by_type: dict[str, FileDescriptorProto] = {}
        for module in _WELL_KNOWN_MODULES:
            self._add_well_known(importlib.import_module(f"{WELL_KNOWN}.{module}_pb2").DESCRIPTOR)
        self._add(ratelimit_config.declared())

    def FindFileByName(self, name: str) -> FileDescriptorProto:  # noqa: N802 - protobuf's interface
        return self._by_name[name]

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptorProto:  # noqa: N802 - protobuf's interface
        """The file that declares a type. Raises KeyError when there is no such type."""
        top = top_level(symbol)
        if top not in self._by_type:
            self._add_component(top)
        return self._by_type[top]

    def _add_well_known(self, file: FileDescriptor) -> None:
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        self._add(proto)

    def _add(self, proto: FileDescriptorProto) -> None:
        """Adds a file that is already whole."""
        self._by_name[proto.name] = proto
        for name in (*(m.name for m in proto.message_type), *(e.name for e in proto.enum_type)):
            self._by_type[f"{proto.package}.{name}"] = proto

    def _add_component(self, top: str) -> None:
        """Adds the file of a type, and before it the files of all types that it needs (Tarjan's algorithm)."""
        order: dict[str, int] = {}
        low: dict[str, int] = {}
        declarations: dict[str, Declaration] = {}
        stack: list[str] = []

        def visit(name: str) -> None:
            declarations[name] = _declare(name)
            order[name] = low[name] = len(order)
            stack.append(name)
            for needed in sorted(declarations[name].needs):
                if needed in self._by_type:
                    continue
                if needed not in order:
                    visit(needed)
                low[name] = min(low[name], low[needed])
            if low[name] == order[name]:
                members = stack[stack.index(name) :]
                del stack[stack.index(name) :]
                self._add_file({member: declarations[member] for member in sorted(members)})

        visit(top)

    def _add_file(self, members: dict[str, Declaration]) -> None:
        packages = {split(name)[0] for name in members}
        if len(packages) != 1:
            raise TypeError(f"types of several packages need each other: {sorted(members)}")
        first = next(iter(members))
        proto = FileDescriptorProto(name=f"{first.replace('.', '/')}.proto", package=packages.pop(), syntax="proto3")
        for declared in members.values():
            if isinstance(declared.body, DescriptorProto):
                proto.message_type.append(declared.body)
            else:
                proto.enum_type.append(declared.body)
        needed = {name for declared in members.values() for name in declared.needs} - members.keys()
        proto.dependency.extend(sorted({self._by_type[name].name for name in needed}))
        self._by_name[proto.name] = proto
        self._by_type.update(dict.fromkeys(members, proto))


def _declare(full_name: str) -> Declaration:
    name, path = split(full_name)
    return package(name).declare(path)
