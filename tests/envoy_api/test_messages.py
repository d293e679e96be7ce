"""Message classes: found by name, loaded when needed, with protobuf's conveniences."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message import DecodeError, Message

import envoy_api
from envoy_api import message, message_class

CLUSTER = "envoy.config.cluster.v3.Cluster"


def test_a_class_is_built_once() -> None:
    assert message_class(CLUSTER) is message_class(CLUSTER)
    assert envoy_api.class_for_url(f"type.googleapis.com/{CLUSTER}") is message_class(CLUSTER)
    assert envoy_api.type_url(message_class(CLUSTER)()) == f"type.googleapis.com/{CLUSTER}"


def test_a_class_loads_what_it_refers_to_and_no_more() -> None:
    script = (
        "import sys, envoy_api\n"
        "def loaded(): return {m for m in sys.modules if m.startswith('envoy_data_plane.envoy.')}\n"
        "assert not loaded(), loaded()\n"
        f"envoy_api.message_class('{CLUSTER}')\n"
        "assert 'envoy_data_plane.envoy.config.core.v3' in loaded()\n"
        "assert not [m for m in loaded() if 'http_connection_manager' in m]\n"
        "assert len(loaded()) < 60, len(loaded())\n"
        "envoy_api.all_type_names()\n"
        "assert len(loaded()) < 60, len(loaded())\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, timeout=60)


def test_the_default_pool_is_left_alone() -> None:
    message_class(CLUSTER)
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName(CLUSTER)


def test_nested_messages_are_nested_types() -> None:
    nested = message_class(f"{CLUSTER}.LbSubsetConfig.LbSubsetSelector")
    containing = nested.DESCRIPTOR.containing_type
    assert containing is not None
    assert containing.full_name == f"{CLUSTER}.LbSubsetConfig"
    assert type(message_class(CLUSTER)().lb_subset_config.subset_selectors.add()) is nested


def test_enums_have_their_proto_names() -> None:
    cluster = message(CLUSTER, type="EDS", lb_policy="LEAST_REQUEST")
    assert (cluster.type, cluster.lb_policy) == (3, 1)
    option = message("envoy.config.core.v3.HeaderValueOption", append_action="OVERWRITE_IF_EXISTS_OR_ADD")
    assert option.append_action == 2
    # betterproto2 takes the prefix off these names.
    version = envoy_api.pool.FindEnumTypeByName("envoy.config.core.v3.SocketOption.SocketIpVersion")
    assert "SOCKET_IP_VERSION_IPV6" in version.values_by_name
    # Its parent cannot be told from its class name.
    reset = envoy_api.pool.FindEnumTypeByName("envoy.config.route.v3.RetryPolicy.ResetHeaderFormat")
    assert list(reset.values_by_name) == ["SECONDS", "UNIX_TIMESTAMP"]


def test_an_enums_aliases_are_kept() -> None:
    level = envoy_api.pool.FindEnumTypeByName("envoy.extensions.compression.gzip.compressor.v3.Gzip.CompressionLevel")
    numbers = {name: value.number for name, value in level.values_by_name.items()}
    assert numbers["BEST_SPEED"] == numbers["COMPRESSION_LEVEL_1"] == 1
    assert numbers["BEST_COMPRESSION"] == numbers["COMPRESSION_LEVEL_9"] == 9


def test_fields_named_like_keywords_of_python() -> None:
    rules = message("validate.StringRules", **{"in": ["a"]})
    assert list(getattr(rules, "in")) == ["a"]


def test_well_known_types_have_their_conveniences() -> None:
    cluster = message(CLUSTER, connect_timeout=timedelta(seconds=1.5))
    assert cluster.connect_timeout.ToTimedelta() == timedelta(seconds=1.5)
    metadata = message("envoy.config.core.v3.Metadata")
    metadata.filter_metadata["envoy.lb"].update({"version": "v42", "weights": [1, 2]})
    assert metadata.filter_metadata["envoy.lb"]["version"] == "v42"
    dump = message("envoy.admin.v3.UpdateFailureState", last_update_attempt=datetime(2030, 1, 2, tzinfo=UTC))
    assert dump.last_update_attempt.ToJsonString() == "2030-01-02T00:00:00Z"


def test_wrappers_know_presence() -> None:
    thresholds = message("envoy.config.cluster.v3.CircuitBreakers.Thresholds")
    assert not thresholds.HasField("max_connections")
    thresholds.max_connections.value = 0
    assert thresholds.HasField("max_connections")


def test_a_oneof_holds_its_last_member() -> None:
    match = message("envoy.config.route.v3.RouteMatch", prefix="/")
    match.path = "/x"
    assert match.WhichOneof("path_specifier") == "path"
    assert not match.HasField("prefix")


def test_recursive_messages() -> None:
    inner = {"not_match": {"any_match": True}}
    predicate = message("envoy.config.common.matcher.v3.MatchPredicate", or_match={"rules": [inner, inner]})
    again = message_class("envoy.config.common.matcher.v3.MatchPredicate").FromString(envoy_api.encode(predicate))
    assert again == predicate
    assert again.or_match.rules[1].not_match.any_match
    # Two that need each other: they share a file.
    assert (
        message_class("envoy.type.matcher.v3.ListMatcher").DESCRIPTOR.file.name
        == message_class("envoy.type.matcher.v3.ValueMatcher").DESCRIPTOR.file.name
    )


def test_any_is_packed_and_unpacked() -> None:
    match = message("envoy.config.route.v3.RouteMatch", prefix="/")
    packed = envoy_api.pack(match)
    assert packed.type_url == "type.googleapis.com/envoy.config.route.v3.RouteMatch"
    assert envoy_api.unpack(packed) == match
    matcher = message("envoy.config.core.v3.TypedExtensionConfig", name="x", typed_config=packed)
    assert envoy_api.unpack(matcher.typed_config) == match
    packed.value = b"\xff"
    with pytest.raises(DecodeError):
        envoy_api.unpack(packed)
    packed.type_url = "type.googleapis.com/envoy.Nothing"
    with pytest.raises(envoy_api.UnknownTypeError):
        envoy_api.unpack(packed)


def test_the_same_map_gives_the_same_bytes_in_whatever_order_it_was_filled() -> None:
    encodings = set()
    for order in permutations(["a", "b", "c", "d"]):
        metadata = message("envoy.config.core.v3.Metadata")
        for key in order:
            metadata.filter_metadata[key].update(dict.fromkeys(order, 1))
        encodings.add(envoy_api.encode(metadata))
    assert len(encodings) == 1


def test_what_a_message_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="no_such"):
        message(CLUSTER, no_such=1)
    with pytest.raises(ValueError, match="LEAST_REQUESTS"):
        message(CLUSTER, lb_policy="LEAST_REQUESTS")
    with pytest.raises(AttributeError):
        message(CLUSTER).no_such = 1
    assert isinstance(message(CLUSTER), Message)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "Cluster",
        "envoy.config.cluster.v3",
        "envoy..Cluster",
        "envoy.config.cluster.v3.Cluster.Nothing",
        "envoy.config.cluster.v3.Cluster.DiscoveryType",
        "envoy.config.cluster.v3.Cluster.name",
        "google.protobuf.Nothing",
        "message_pool.Nothing",
        "os.Path",
        "../envoy.Cluster",
        "envoy.config.cluster.v3.Clustér",
        "\ud800",
        "a" * 10_000,
    ],
)
def test_a_name_that_is_no_message(name: str) -> None:
    with pytest.raises(envoy_api.UnknownTypeError) as raised:
        message_class(name)
    assert isinstance(raised.value, KeyError)
    assert repr(name) in str(raised.value)


def test_an_unknown_name_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(envoy_api.UnknownTypeError) as raised:
        envoy_api.class_for_url("type.googleapis.com/envoy.config.cluster.v3.Clutser")
    assert str(raised.value).endswith("in Envoy's API, did you mean envoy.config.cluster.v3.Cluster?")
