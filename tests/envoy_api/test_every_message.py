"""Every message of envoy-data-plane against its own runtime: what one encodes, the other reads as the same values.

betterproto2 resolves the classes of fields in its own way (by type hints) and encodes in declaration order, so an
error in how this package reads the schema (a wrong number, type, oneof, map, presence or name) cannot hide in both.
"""

import dataclasses
import importlib
import pkgutil
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import betterproto2
import envoy_data_plane
import pytest
from betterproto2 import FieldMetadata
from envoy_data_plane.message_pool import default_message_pool
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

import envoy_api


def package_of(name: str) -> str:
    return ".".join(part for part in name.split(".") if part[0].islower())


DEPTH = 2
"""How many levels of sub-messages are filled in; the messages of the last level are there, but empty."""
PACKAGES = sorted({package_of(name) for name in envoy_api.all_type_names()})

SCALARS: dict[str, Any] = {
    "bool": True,
    "bytes": b"\xff\x00",
    "double": 1.1,
    "fixed32": 4_000_000_001,
    "fixed64": 2**63 + 1,
    "float": 2.5,
    "int32": -32,
    "int64": -(2**40),
    "sfixed32": -33,
    "sfixed64": -(2**41),
    "sint32": -34,
    "sint64": -(2**42),
    "string": "žluťoučký",
    "uint32": 4_000_000_002,
    "uint64": 2**63 + 2,
}
WRAPPED: dict[str, Any] = {
    "Duration": timedelta(days=3, microseconds=7),
    "Timestamp": datetime(2030, 1, 2, 3, 4, 5, 600, tzinfo=UTC),
}


@pytest.fixture(scope="module")
def generated() -> dict[str, type]:
    """All of envoy-data-plane's classes by full name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for module in pkgutil.walk_packages(envoy_data_plane.__path__, "envoy_data_plane."):
            importlib.import_module(module.name)
    return {url.rpartition("/")[2]: cls for url, cls in default_message_pool.url_to_type.items()}


def test_the_names_are_those_that_are_registered_when_all_is_imported(generated: dict[str, type]) -> None:
    assert envoy_api.all_type_names() == tuple(sorted(generated))
    assert len(generated) > 2000


def described(cls: Any) -> Iterator[tuple[str, FieldMetadata, Any]]:
    """Name, metadata and class of each field, by betterproto2's own account."""
    for field in dataclasses.fields(cls):
        meta = FieldMetadata.get(field)
        suffix = ".value" if meta.map_meta else ""
        yield field.name, meta, cls._betterproto.cls_by_field[field.name + suffix]


def populated(cls: Any, depth: int, variant: int) -> Any:
    """An instance with every field set; of each oneof the member that the variant points at."""
    values: dict[str, Any] = {}
    oneofs: dict[str, list[tuple[str, Callable[[], Any]]]] = defaultdict(list)
    for name, meta, target in described(cls):
        if meta.map_meta:
            key, value = meta.map_meta
            values[name] = {SCALARS[key.proto_type]: single(value, target, depth, variant)}
        elif meta.repeated:
            values[name] = [single(meta, target, depth, variant) for _ in range(2)]
        elif meta.group:
            oneofs[meta.group].append((name, lambda m=meta, t=target: single(m, t, depth, variant)))  # type: ignore[misc]
        else:
            values[name] = single(meta, target, depth, variant)
    for members in oneofs.values():
        name, make = members[variant % len(members)]
        values[name] = make()
    return cls(**values)


def single(meta: FieldMetadata, target: Any, depth: int, variant: int) -> Any:
    if meta.unwrap:
        name = meta.unwrap().__name__
        return WRAPPED[name] if name in WRAPPED else SCALARS[name.removesuffix("Value").lower()]
    if meta.proto_type == "message":
        return populated(target, depth - 1, variant) if depth else target()
    return list(target)[-1] if meta.proto_type == "enum" else SCALARS[meta.proto_type]


def assert_same(theirs: Any, ours: Message) -> None:
    """Field by field, by name: both hold the same values, of the same kinds."""
    assert default_message_pool.type_to_url[type(theirs)] == f"type.googleapis.com/{ours.DESCRIPTOR.full_name}"
    known = ours.DESCRIPTOR.fields_by_number
    assert {meta.number for _, meta, _ in described(type(theirs))} == set(known)
    for name, meta, _ in described(type(theirs)):
        field = known[meta.number]
        where = f"{ours.DESCRIPTOR.full_name}.{name}"
        assert field.name in (name, name.removesuffix("_")), where
        assert field.is_repeated == bool(meta.repeated or meta.map_meta), where
        oneof = field.containing_oneof
        synthetic = oneof is not None and oneof.name == f"_{field.name}"
        assert (oneof.name if oneof is not None and not synthetic else None) == meta.group, where
        value, mine = getattr(theirs, name), getattr(ours, field.name)
        if meta.map_meta:
            assert value.keys() == mine.keys(), where
            for key in value:
                assert_same_single(
                    meta.map_meta[1], value[key], mine[key], field.message_type.fields_by_name["value"]
                )
        elif meta.repeated:
            assert len(value) == len(mine), where
            for one, other in zip(value, mine, strict=True):
                assert_same_single(meta, one, other, field)
        elif meta.optional or meta.group:
            assert ours.HasField(field.name) == (value is not None), where
            if value is not None:
                assert_same_single(meta, value, mine, field)
        else:
            assert not field.has_presence, where
            assert_same_single(meta, value, mine, field)


def assert_same_single(meta: FieldMetadata, theirs: Any, ours: Any, field: FieldDescriptor) -> None:
    if meta.unwrap:
        assert_same(meta.unwrap().from_wrapped(theirs), ours)
    elif isinstance(theirs, betterproto2.Message):
        assert_same(theirs, ours)
    elif isinstance(theirs, betterproto2.Enum):
        assert field.enum_type.values_by_name[theirs.proto_name or theirs.name].number == theirs == ours
    else:
        assert getattr(FieldDescriptor, f"TYPE_{meta.proto_type.upper()}") == field.type, field.full_name
        assert (type(theirs), theirs) == (type(ours), ours), field.full_name


@pytest.mark.parametrize("package", PACKAGES)
def test_both_runtimes_agree_on_every_message(package: str, generated: dict[str, type]) -> None:
    names = [name for name in envoy_api.all_type_names() if package_of(name) == package]
    assert names
    for name in names:
        theirs, ours = generated[name], envoy_api.message_class(name)
        oneofs = [len(oneof.fields) for oneof in ours.DESCRIPTOR.oneofs]
        for variant in range(max(oneofs, default=1)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # every field is set, the deprecated ones too
                instance = populated(theirs, DEPTH, variant)
                encoded = bytes(instance)
                message = ours.FromString(encoded)
                # protobuf's own descriptor.proto is newer and proto2: other fields, defaults and required ones.
                if ours.DESCRIPTOR.file.name != "google/protobuf/descriptor.proto":
                    assert_same(instance, message)
                known = ours()
                known.CopyFrom(message)
                known.DiscardUnknownFields()
                assert known.SerializePartialToString() == message.SerializePartialToString(), (
                    f"{name}: unknown fields"
                )
                again: Any = theirs.parse(message.SerializePartialToString(deterministic=True))  # type: ignore[attr-defined]
                assert again == instance, name
                assert bytes(again) == encoded, name
