"""How declarations are read from generated dataclasses, where no message of today's API shows it."""

import dataclasses
import sys
from types import ModuleType

import betterproto2
import pytest
from betterproto2 import field
from envoy_data_plane.message_pool import default_message_pool
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from envoy_api.files import Files
from envoy_api.schema import Package, split, top_level

MODULE = "envoy_data_plane.made.up.v3"


@dataclasses.dataclass(eq=False, repr=False)
class Thing(betterproto2.Message):
    first: "int | None" = field(1, betterproto2.TYPE_INT32, group="choice", optional=True)
    maybe: "str | None" = field(2, betterproto2.TYPE_STRING, optional=True)
    second: "int | None" = field(3, betterproto2.TYPE_INT32, group="choice", optional=True)
    also: "bool | None" = field(4, betterproto2.TYPE_BOOL, optional=True)


@dataclasses.dataclass(eq=False, repr=False)
class Odd(betterproto2.Message):
    strange: "set[Thing]" = field(1, betterproto2.TYPE_MESSAGE, repeated=True)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Package:
    module = ModuleType(MODULE)
    for cls in (Thing, Odd):
        monkeypatch.setattr(cls, "__module__", MODULE)
        monkeypatch.setitem(default_message_pool.type_to_url, cls, f"type.googleapis.com/made.up.v3.{cls.__name__}")
        setattr(module, cls.__name__, cls)
    monkeypatch.setitem(sys.modules, MODULE, module)
    return Package("made.up.v3", module)


def test_proto3_optional_scalars_know_presence(made_up: Package) -> None:
    declared = made_up.declare("Thing").body
    assert isinstance(declared, DescriptorProto)
    # descriptor.proto: synthetic oneofs come after all others.
    assert [oneof.name for oneof in declared.oneof_decl] == ["choice", "_maybe", "_also"]
    file = FileDescriptorProto(name="made/up.proto", package="made.up.v3", syntax="proto3", message_type=[declared])
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    cls = GetMessageClass(pool.FindMessageTypeByName("made.up.v3.Thing"))
    empty, given = cls(), cls(maybe="", also=False)
    assert not empty.HasField("maybe")
    assert given.HasField("maybe")
    assert given.SerializeToString() == bytes(Thing(maybe="", also=False)) == b"\x12\x00\x20\x00"


def test_an_annotation_of_an_unknown_form_is_an_error_not_a_guess(made_up: Package) -> None:
    with pytest.raises(TypeError, match=r"Odd\.strange: cannot read the annotation 'set\[Thing\]'"):
        made_up.declare("Odd")


def test_names_are_split_at_the_first_capital() -> None:
    assert split("envoy.config.cluster.v3.Cluster.LbPolicy") == ("envoy.config.cluster.v3", "Cluster.LbPolicy")
    assert split("envoy.config") == ("envoy.config", "")
    assert top_level("envoy.config.cluster.v3.Cluster.LbPolicy") == "envoy.config.cluster.v3.Cluster"


def test_files_import_each_other_without_circles() -> None:
    files = Files()
    start = files.FindFileContainingSymbol("envoy.config.bootstrap.v3.Bootstrap").name
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"{name} imports itself"
        if name not in done:
            for dependency in files.FindFileByName(name).dependency:
                visit(dependency, (*above, name))
            done.add(name)

    visit(start, ())
    assert len(done) > 100


def test_two_processes_write_the_same_files() -> None:
    symbol = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    one, other = Files(), Files()
    other.FindFileContainingSymbol("envoy.config.route.v3.Route")  # another order of asking
    assert one.FindFileContainingSymbol(symbol) == other.FindFileContainingSymbol(symbol)
