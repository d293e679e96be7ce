"""Messages from and to Envoy's YAML form: what is refused says where and why, what is taken comes back the same."""

import json
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import envoy
import pytest
import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import envoy_api
from envoy_api import InvalidMessageError, message, parse, to_dict

CLUSTER = "envoy.config.cluster.v3.Cluster"
MATCH = "envoy.config.route.v3.RouteMatch"
HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
HCM = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
URL = "type.googleapis.com/"

BOOTSTRAP = """
node: {id: a, cluster: b, metadata: {region: eu, weight: 3, tags: [x, 1.5, null, {deep: true}]}}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [{envoy_grpc: {cluster_name: xds}}]
  cds_config: {ads: {}, resource_api_version: V3}
layered_runtime:
  layers:
  - name: swashplate
    rtds_layer: {name: swashplate, rtds_config: {ads: {}, resource_api_version: V3}}
static_resources:
  listeners:
  - name: egress
    address: {socketAddress: {address: 127.0.0.1, portValue: 0}}
    per_connection_buffer_limit_bytes: 32768
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/HCM
          stat_prefix: egress
          codec_type: AUTO
          stream_idle_timeout: 0s
          route_config:
            name: egress
            virtual_hosts:
            - name: checkout
              domains: [checkout, "checkout:*"]
              typed_per_filter_config:
                envoy.filters.http.fault:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault
                  delay: {fixed_delay: 0.25s, percentage: {numerator: 10, denominator: TEN_THOUSAND}}
              routes:
              - match: {safe_regex: {regex: "/v[0-9]+/.*"}, headers: [{name: x, string_match: {exact: y}}]}
                route:
                  weighted_clusters:
                    clusters: [{name: stable, weight: 9000}, {name: canary, weight: 1000}]
                  timeout: 3s
                response_headers_to_add:
                - header: {key: x-a, value: b}
                  append_action: OVERWRITE_IF_EXISTS_OR_ADD
              - match: {prefix: /}
                direct_response: {status: 404, body: {inline_string: "nothing here"}}
          http_filters:
          - name: envoy.filters.http.fault
            disabled: true
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: xds
    type: STATIC
    connect_timeout: 1s
    lb_policy: LEAST_REQUEST
    load_assignment:
      cluster_name: xds
      endpoints:
      - lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 18000}}}}]
    circuit_breakers: {thresholds: [{max_connections: 100}]}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config:
          http2_protocol_options: {connection_keepalive: {interval: 30s, timeout: 5s}}
  - {name: stable, type: EDS, eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}}
  - {name: canary, type: EDS, eds_cluster_config: {eds_config: {ads: {}, resource_api_version: V3}}}
"""


def envoy_binary() -> Path:
    return next(path for path in Path(envoy.__file__).parent.rglob("envoy") if path.is_file())


@pytest.mark.envoy
def test_a_whole_bootstrap_comes_back_as_it_was_and_envoy_takes_it(tmp_path: Path) -> None:
    data = yaml.safe_load(BOOTSTRAP.replace("HCM", HCM))
    bootstrap = parse("envoy.config.bootstrap.v3.Bootstrap", data)
    manager = envoy_api.unpack(bootstrap.static_resources.listeners[0].filter_chains[0].filters[0].typed_config)
    assert [
        c.weight.value for c in manager.route_config.virtual_hosts[0].routes[0].route.weighted_clusters.clusters
    ] == [
        9000,
        1000,
    ]
    shown = to_dict(bootstrap)
    assert parse("envoy.config.bootstrap.v3.Bootstrap", shown) == bootstrap
    listener = data["static_resources"]["listeners"][0]
    listener["address"] = {"socket_address": {"address": "127.0.0.1", "port_value": 0}}  # it was in lowerCamelCase
    fault = listener["filter_chains"][0]["filters"][0]["typed_config"]["route_config"]["virtual_hosts"][0]
    fault["typed_per_filter_config"]["envoy.filters.http.fault"]["delay"]["fixed_delay"] = "0.250s"
    for chain in shown["static_resources"]["listeners"][0]["filter_chains"]:  # zeros are not shown
        chain["filters"][0]["typed_config"]["codec_type"] = "AUTO"
    shown["static_resources"]["clusters"][0]["type"] = "STATIC"
    assert shown == data
    file = tmp_path / "bootstrap.json"
    file.write_text(json.dumps(shown), encoding="utf-8")
    run = subprocess.run(
        [envoy_binary(), "--mode", "validate", "-c", file, "-l", "error"], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr + run.stdout


def test_null_is_as_if_it_were_not_there() -> None:
    assert parse(MATCH, {"prefix": None, "path": "/x"}) == message(MATCH, path="/x")


def test_an_any_may_hold_a_well_known_type_or_another_any() -> None:
    for data in (
        {"@type": f"{URL}google.protobuf.Duration", "value": "1.500s"},
        {"@type": f"{URL}google.protobuf.Struct", "value": {"a": [1, {"b": None, "c": 2.5}]}},
        {"@type": f"{URL}google.protobuf.Any", "value": {"@type": f"{URL}google.protobuf.UInt64Value", "value": 7}},
        {"@type": f"{URL}{MATCH}", "prefix": "/"},
    ):
        assert to_dict(parse("google.protobuf.Any", data)) == data


def test_maps_are_shown_sorted_and_whole_numbers_of_structs_without_a_fraction() -> None:
    metadata = message("envoy.config.core.v3.Metadata")
    for key in ("zebra", "apple", "mango"):
        metadata.filter_metadata[key].update({"b": {"y": 1, "x": 2.5}, "a": [{"d": 10**20, "c": -3}]})
        metadata.typed_filter_metadata[key].CopyFrom(envoy_api.pack(message(MATCH, prefix=key)))
    shown = to_dict(metadata)
    assert list(shown) == ["filter_metadata", "typed_filter_metadata"]
    assert list(shown["filter_metadata"]) == list(shown["typed_filter_metadata"]) == ["apple", "mango", "zebra"]
    assert repr(shown["filter_metadata"]["mango"]) == ("{'a': [{'c': -3, 'd': 1e+20}], 'b': {'x': 2.5, 'y': 1}}")


def test_numbers_of_64_bits_are_shown_as_numbers_where_that_loses_nothing() -> None:
    ring = message("envoy.config.cluster.v3.Cluster.RingHashLbConfig", minimum_ring_size={"value": 1024})
    assert to_dict(ring) == {"minimum_ring_size": 1024}
    ring.minimum_ring_size.value = 2**53 + 1
    assert to_dict(ring) == {"minimum_ring_size": str(2**53 + 1)}


CASES: list[tuple[str, str, Any, list[str]]] = [
    (
        "an unknown field",
        CLUSTER,
        {"name": "a", "lb_polcy": "RANDOM"},
        [f"lb_polcy: no such field in {CLUSTER}, did you mean lb_policy?"],
    ),
    (
        "an unknown field of a small message",
        "envoy.type.v3.FractionalPercent",
        {"percent": 5},
        ["percent: no such field in envoy.type.v3.FractionalPercent (it has numerator, denominator)"],
    ),
    (
        "a field deep inside an Any in a map",
        CLUSTER,
        {
            "typed_extension_protocol_options": {
                HTTP_OPTIONS: {"@type": URL + HTTP_OPTIONS, "explicit_http_config": {"http_options": {}}}
            }
        },
        [
            f'typed_extension_protocol_options["{HTTP_OPTIONS}"].explicit_http_config.http_options: no such field in '
            f"{HTTP_OPTIONS}.ExplicitHttpConfig, did you mean http_protocol_options?"
        ],
    ),
    (
        "several, in lists too",
        CLUSTER,
        {"circuit_breakers": {"thresholds": [{"max_connections": "many"}, {"max_retries": -1}, None, 5]}, "name": 5},
        [
            "circuit_breakers.thresholds[0].max_connections: "
            "expected a whole number from 0 to 4294967295, not 'many'",
            "circuit_breakers.thresholds[1].max_retries: expected a whole number from 0 to 4294967295, not -1",
            "circuit_breakers.thresholds[2]: expected a mapping, "
            "the fields of envoy.config.cluster.v3.CircuitBreakers.Thresholds, not null",
            "circuit_breakers.thresholds[3]: expected a mapping, "
            "the fields of envoy.config.cluster.v3.CircuitBreakers.Thresholds, not 5",
            "name: expected a string, not 5",
        ],
    ),
    (
        "an enum's value",
        CLUSTER,
        {"lb_policy": "LEAST_REQUESTS", "dns_lookup_family": [1]},
        [
            f"lb_policy: no such value of {CLUSTER}.LbPolicy, did you mean LEAST_REQUEST?",
            f"dns_lookup_family: expected a value of {CLUSTER}.DnsLookupFamily, not a list",
        ],
    ),
    (
        "two members of a oneof",
        MATCH,
        {"prefix": "/", "path": "/x"},
        [f"path: only one of prefix and path may be set in {MATCH}"],
    ),
    (
        "a duration",
        CLUSTER,
        {"connect_timeout": "3 sec"},
        ["connect_timeout: expected a duration in seconds such as 1.5s, not '3 sec'"],
    ),
    (
        "a bool",
        CLUSTER,
        {"ignore_health_on_host_removal": "yes"},
        ["ignore_health_on_host_removal: expected true or false, not 'yes'"],
    ),
    ("a list", MATCH, {"headers": {"name": "x"}}, ["headers: expected a list, not a mapping"]),
    (
        "an element",
        MATCH,
        {"query_parameters": [{"name": []}]},
        ["query_parameters[0].name: expected a string, not a list"],
    ),
    (
        "a null in a list of strings",
        "envoy.config.route.v3.VirtualHost",
        {"domains": ["a", None]},
        ["domains[1]: expected a string, not null"],
    ),
    (
        "a map",
        "envoy.config.core.v3.Metadata",
        {"filter_metadata": ["a"], "typed_filter_metadata": {1: {}}},
        ["filter_metadata: expected a mapping, not a list", "typed_filter_metadata[1]: expected a string as key"],
    ),
    (
        "bytes",
        "envoy.config.core.v3.DataSource",
        {"inline_bytes": 7},
        ["inline_bytes: expected bytes in base64, not 7"],
    ),
    (
        "bytes that are no base64, within an Any",
        "envoy.config.core.v3.TypedExtensionConfig",
        {
            "typed_config": {
                "@type": f"{URL}envoy.extensions.filters.http.basic_auth.v3.BasicAuth",
                "users": {"inlineBytes": "no!!"},
            }
        },
        ["typed_config.users.inlineBytes: expected bytes in base64, not 'no!!'"],
    ),
    (
        "base64 that lacks a part",
        "envoy.config.core.v3.DataSource",
        {"inline_bytes": "aaaaa"},
        ["inline_bytes: expected bytes in base64, not 'aaaaa'"],
    ),
    (
        "an Any without its type",
        "envoy.config.core.v3.TypedExtensionConfig",
        {"typed_config": {"prefix": "/"}},
        ["typed_config: @type is missing: the type of this message, as type.googleapis.com/<full name>"],
    ),
    (
        "an Any of an unknown type",
        "envoy.config.core.v3.TypedExtensionConfig",
        {"typed_config": {"@type": f"{URL}envoy.config.route.v3.RuoteMatch"}},
        [
            "typed_config.@type: no message type 'envoy.config.route.v3.RuoteMatch' in Envoy's API, "
            f"did you mean {MATCH}?"
        ],
    ),
    (
        "an Any of a well-known type",
        "envoy.config.core.v3.TypedExtensionConfig",
        {"typed_config": {"@type": f"{URL}google.protobuf.Duration", "seconds": 1}},
        ["typed_config: google.protobuf.Duration in an Any is written as @type and value"],
    ),
    ("no mapping at all", MATCH, ["/"], [f"expected a mapping, the fields of {MATCH}, not a list"]),
    ("null at all", MATCH, None, [f"expected a mapping, the fields of {MATCH}, not null"]),
    ("a key that is no string", MATCH, {5: 1}, [f"[5]: no such field in {MATCH}"]),
]


@pytest.mark.parametrize(("kind", "data", "faults"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_fault_is_told_with_its_path(kind: str, data: Any, faults: list[str]) -> None:
    with pytest.raises(InvalidMessageError) as raised:
        parse(kind, data)
    assert [str(fault) for fault in raised.value.faults] == faults
    assert raised.value.type_name == kind
    assert str(raised.value) == "\n".join(faults)
    for fault in raised.value.faults:  # a path leads to something in the data
        here = data
        for part in fault.path:
            here = here[part]


def test_what_only_protobuf_sees_is_told_in_its_words() -> None:
    deep: dict[str, Any] = {"any_match": True}
    for _ in range(200):
        deep = {"not_match": deep}
    with pytest.raises(InvalidMessageError, match=r"nest|deep|recursion"):
        parse("envoy.config.common.matcher.v3.MatchPredicate", deep)


def test_an_unknown_type_is_not_a_fault_of_the_data() -> None:
    with pytest.raises(envoy_api.UnknownTypeError):
        parse("envoy.config.route.v3.Ruote", {})


@given(st.sampled_from([CLUSTER, MATCH, "google.protobuf.Any", "envoy.config.core.v3.Metadata"]), st.data())
@settings(deadline=None)
def test_whatever_is_given_is_a_message_or_refused(kind: str, data: st.DataObject) -> None:
    names = [field.name for field in envoy_api.message_class(kind).DESCRIPTOR.fields]
    scalars = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(max_size=3)
    keys = st.sampled_from([*names, "@type", "value", "seconds", "ads", "", "[x]"]) | st.integers()
    types = st.sampled_from([f"{URL}{MATCH}", f"{URL}google.protobuf.Duration", f"{URL}google.protobuf.Any"])
    anything = st.recursive(
        scalars | types,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )
    given_data = data.draw(anything)
    refused = ""
    try:
        shown = to_dict(parse(kind, given_data))
    except InvalidMessageError as error:
        refused = str(error)
    assert refused or to_dict(parse(kind, shown)) == shown


SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(allow_nan=False),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(allow_nan=False, width=32),
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
PLAIN = st.recursive(
    st.none() | st.booleans() | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


def values(draw: st.DrawFn, field: FieldDescriptor, depth: int) -> Any:
    if field.message_type is not None:
        return fields(draw, field.message_type, depth - 1)
    if field.enum_type is not None:
        return draw(st.sampled_from([value.number for value in field.enum_type.values]))
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return draw(st.binary(max_size=5) if field.type == FieldDescriptor.TYPE_BYTES else TEXT)
    return draw(SCALARS[field.cpp_type])


def fields(draw: st.DrawFn, kind: Descriptor, depth: int) -> Any:
    """A message of the type with some of its fields set, at random."""
    made = envoy_api.message_class(kind.full_name)()
    match kind.full_name:
        case "google.protobuf.Any":
            inner = envoy_api.message_class(draw(st.sampled_from([MATCH, "google.protobuf.Duration"])))
            made.CopyFrom(envoy_api.pack(fields(draw, inner.DESCRIPTOR, depth)))
        case "google.protobuf.Struct":
            made.update(draw(st.dictionaries(TEXT, PLAIN, max_size=3)))
        case "google.protobuf.Duration":
            made.FromTimedelta(draw(st.timedeltas(timedelta(days=-1000), timedelta(days=1000))))
        case "google.protobuf.Timestamp":
            made.FromSeconds(draw(st.integers(0, 2**33)))
        case _:
            for field in draw(st.lists(st.sampled_from(list(kind.fields)), max_size=4)) if kind.fields else []:
                if field.message_type is not None and depth <= 0:
                    continue
                if field.message_type is not None and field.message_type.GetOptions().map_entry:
                    target = field.message_type.fields_by_name["value"]
                    key = draw(TEXT)
                    if target.message_type is not None:
                        getattr(made, field.name)[key].CopyFrom(values(draw, target, depth))
                    else:
                        getattr(made, field.name)[key] = values(draw, target, depth)
                elif field.is_repeated:
                    getattr(made, field.name).append(values(draw, field, depth))
                elif field.message_type is not None:
                    getattr(made, field.name).CopyFrom(values(draw, field, depth))
                else:
                    setattr(made, field.name, values(draw, field, depth))
    return made


@st.composite
def messages(draw: st.DrawFn) -> Any:
    names = (
        CLUSTER,
        "envoy.config.route.v3.RouteConfiguration",
        "envoy.config.listener.v3.Listener",
        "envoy.config.endpoint.v3.ClusterLoadAssignment",
        HCM,
        "envoy.service.runtime.v3.Runtime",
    )
    return fields(draw, envoy_api.message_class(draw(st.sampled_from(names))).DESCRIPTOR, 4)


@given(messages())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_what_is_shown_parses_back_to_the_same_message(made: Any) -> None:
    shown = to_dict(made)
    again = parse(made.DESCRIPTOR.full_name, shown)
    assert envoy_api.encode(again) == envoy_api.encode(made)
    assert to_dict(type(made).FromString(envoy_api.encode(made))) == shown


@pytest.mark.parametrize("text", ["+/8=", "-_8=", "+/8", "-_8"])
def test_bytes_in_either_alphabet_and_with_or_without_padding(text: str) -> None:
    assert parse("envoy.config.core.v3.DataSource", {"inline_bytes": text}).inline_bytes == b"\xfb\xff"
