"""Keys of the Lighthouse as Nelson writes them, and every way in which another writer may get them wrong."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.lighthouse.parse import Dependencies, Entry, Target, parse_discovery, parse_v1, parse_v2
from mesh.service import Protocol
from operator_files.last_good import Reading
from operator_files.problem import Problem
from tests.lighthouse.keys import NEW, OLD, discovery, route, target

FILE = "consul:lighthouse/discovery/v1/caller"


def dependencies(text: str) -> Dependencies:
    reading = parse_discovery(text, FILE)
    assert reading.value is not None, reading.problems
    return reading.value


def said(problems: Iterable[Problem]) -> list[tuple[str, str, int, int]]:
    return [(problem.code, str(problem.severity), problem.line, problem.column) for problem in problems]


def test_a_documented_value_is_read_as_it_stands() -> None:
    text = """{"defaultNamespace":"dev","domain":"your.consul-tld.com",
 "namespaces":[{"name":"dev","routes":[{"service":"howdy-http","port":"default",
  "targets":[{"stack":"howdy-http--1-0-388--aeiq8irl","port":9000,"protocol":"http","weight":84},
             {"stack":"howdy-http--1-0-389--bb12cc34","port":9000,"protocol":"http","weight":16}]}]}]}"""
    reading = parse_discovery(text.encode(), FILE)
    assert reading.problems == ()
    assert reading.text == text
    assert reading.value is not None
    assert (reading.value.namespace, reading.value.domain) == ("dev", "your.consul-tld.com")
    (found,) = reading.value.routes
    assert (found.namespace, found.service, found.port_name, found.port) == ("dev", "howdy-http", "default", 9000)
    assert found.protocol is Protocol.HTTP1
    assert found.targets == (Target(OLD, 9000, 84), Target(NEW, 9000, 16))


@pytest.mark.parametrize("weights", [(100, 0), (84, 16), (50, 50), (2, 98)])
def test_weights_of_a_running_shift_are_not_odd(weights: tuple[int, int]) -> None:
    text = discovery(dev=[route(target(OLD, weights[0]), target(NEW, weights[1]))])
    reading = parse_discovery(text, FILE)
    assert reading.problems == ()
    assert reading.value is not None
    assert [found.weight for found in reading.value.routes[0].targets] == list(weights)


@pytest.mark.parametrize(
    ("word", "protocol"),
    [
        ("http", Protocol.HTTP1),
        ("https", Protocol.TLS),
        ("tcp", Protocol.TCP),
        ("wss", Protocol.TLS),
        ("HTTP", Protocol.HTTP1),
        ("grpc", Protocol.GRPC),
    ],
)
def test_protocols(word: str, protocol: Protocol) -> None:
    found = dependencies(discovery(dev=[route(target(OLD, 100, protocol=word))]))
    assert found.routes[0].protocol is protocol


def test_no_dependencies_is_an_answer() -> None:
    assert dependencies(discovery()) == Dependencies("dev", "your.consul-tld.com")


def test_two_majors_in_one_route_weigh_200_and_are_shares_of_it() -> None:
    other = "howdy-http--2-0-1--cc34dd56"
    reading = parse_discovery(discovery(dev=[route(target(OLD, 100), target(other, 100))]), FILE)
    assert reading.value is not None
    (problem,) = reading.problems
    assert (problem.code, problem.is_error) == ("N003", False)
    assert "sum to 200" in problem.message


def test_what_comes_twice_is_put_together() -> None:
    text = discovery(dev=[route(target(OLD, 60)), route(target(OLD, 10), target(NEW, 30))])
    reading = parse_discovery(text, FILE)
    assert reading.value is not None
    (found,) = reading.value.routes
    assert found.targets == (Target(OLD, 9000, 70), Target(NEW, 9000, 30))
    assert {problem.code for problem in reading.problems} == {"N004"}


def test_unknown_keys_are_passed_over_with_a_warning_at_their_place() -> None:
    text = """{
  "defaultNamespace": "dev", "domain": "", "generation": 7,
  "namespaces": [{"name": "dev", "routes": [
    {"service": "a", "port": "default", "targets": [
      {"stack": "s", "port": 80, "protocol": "http", "weight": 100, "zone": null}]}]}]}"""
    reading = parse_discovery(text, FILE)
    assert reading.value is not None
    assert said(reading.problems) == [("N001", "warning", 2, 44), ("N001", "warning", 5, 69)]


def test_all_errors_show_at_once_each_at_its_place() -> None:
    text = """{
  "namespaces": [{"name": "dev", "routes": [
    {"service": "a b", "port": "default", "targts": [], "targets": [
      {"stack": "s", "port": 0, "protocol": "htp", "weight": -1}]}]}]}"""
    reading = parse_discovery(text, FILE)
    assert reading.value is None
    assert said(reading.problems) == [
        ("F012", "error", 1, 1),
        ("F013", "error", 3, 17),
        ("N001", "warning", 3, 43),
        ("F013", "error", 4, 30),
        ("F013", "error", 4, 45),
        ("F013", "error", 4, 62),
    ]
    protocol = reading.problems[4]
    assert protocol.fix == "did you mean `http`?"


def test_a_misspelt_key_is_missed_under_its_own_name() -> None:
    reading = parse_discovery('{"defaultNamspace": "dev", "namespaces": []}', FILE)
    assert reading.value is None
    missing, unknown = reading.problems
    assert "`defaultNamespace` is missing" in missing.message
    assert unknown.fix == "did you mean `defaultNamespace`?"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "F003"),
        ("null", "F003"),
        ("{", "F004"),
        ("[]", "F013"),
        (discovery(dev=[route(target(OLD, 0))]), "N002"),
        (discovery(dev=[route()]), "F013"),
        (discovery(dev=[route(target(OLD, 100), service="*")]), "F013"),
        (discovery(default="a//b"), "F013"),
        (discovery(domain="two words"), "F013"),
    ],
)
def test_what_cannot_be_served_is_an_error(text: str, code: str) -> None:
    reading = parse_discovery(text, FILE)
    assert reading.value is None
    assert [problem.code for problem in reading.problems] == [code]


def test_a_key_that_may_not_be_read_is_an_error() -> None:
    reading = parse_discovery(OSError(13, "Permission denied"), FILE)
    assert (reading.value, reading.problems[0].code) == (None, "F015")


def test_targets_that_disagree_about_the_port_are_told() -> None:
    reading = parse_discovery(discovery(dev=[route(target(OLD, 50, 9000), target(NEW, 50, 9001))]), FILE)
    assert reading.value is not None
    assert reading.value.routes[0].port == 9000
    assert [problem.code for problem in reading.problems] == ["N005"]


def test_load_balancers_of_version_1() -> None:
    text = json.dumps(
        [{"frontend_name": f"default-{OLD}", "frontend_port": 8444, "backend_stack": OLD, "port_label": "default"}]
    )
    reading = parse_v1(text, FILE)
    assert reading.problems == ()
    assert reading.value == (Entry(8444, "default", (0,), name=f"default-{OLD}", stack=OLD),)


def test_load_balancers_of_version_2() -> None:
    text = '[{"frontend_port":8444,"port_label":"default","service_name":"foobar","major_version":1}]'
    reading = parse_v2(text, FILE)
    assert reading.problems == ()
    assert reading.value == (Entry(8444, "default", (0,), service="foobar", major=1),)


def test_a_load_balancer_without_listeners_is_an_answer() -> None:
    assert (parse_v1("[]", FILE).value, parse_v2("[]", FILE).value) == ((), ())


def test_one_port_in_front_of_two_services_is_an_error() -> None:
    entry = {"frontend_port": 8444, "port_label": "default", "service_name": "a", "major_version": 1}
    same = parse_v2(json.dumps([entry, entry]), FILE)
    assert same.value is not None
    assert [problem.code for problem in same.problems] == ["N004"]
    other = parse_v2(json.dumps([entry, {**entry, "major_version": 2}]), FILE)
    assert other.value is None
    assert [problem.code for problem in other.problems] == ["N008"]


def is_explained(reading: Reading[object]) -> bool:
    return reading.value is not None or any(problem.is_error for problem in reading.problems)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70_000) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["defaultNamespace", "namespaces", "name", "routes", "service", "port", "targets", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_is_written_is_a_value_or_an_error(data: object) -> None:
    text = json.dumps(data)
    for read in (parse_discovery, parse_v1, parse_v2):
        assert is_explained(read(text, FILE))


@given(st.binary(max_size=40))
def test_bytes_are_no_harm(content: bytes) -> None:
    assert is_explained(parse_discovery(content, FILE))
