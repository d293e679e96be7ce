"""From the text of a limit file to its limits."""

import gc

import yaml

from operator_files.problem import has_errors
from ratelimit.counters.check import Algorithm, Calendar
from ratelimit.limits.limit import Limit, OnStoreFailure
from ratelimit.limits.parse import parse, parse_data
from ratelimit.unit import Unit
from tests.ratelimit.limits.trees import domain


def limit(text: str) -> Limit:
    """The only limit of a descriptor that has this as its `rate_limit`."""
    (found,) = domain(f"domain: d\ndescriptors:\n- key: k\n  rate_limit: {{{text}}}\n").limits()
    return found


def test_every_key_of_a_limit_arrives() -> None:
    found = limit(
        "unit: MONTH, requests_per_unit: 7, unit_multiplier: 3, calendar: true, time_zone: Europe/Berlin, "
        "name: n, replaces: [{name: other}], charge_denied: false, on_store_failure: deny"
    )
    assert (found.requests, found.unit, found.multiplier) == (7, Unit.MONTH, 3)
    assert found.calendar == Calendar(Unit.MONTH, "Europe/Berlin", 3)
    assert (found.name, found.replaces) == ("n", frozenset({"other"}))
    assert found.charge_denied is False
    assert found.on_store_failure is OnStoreFailure.DENY
    assert (found.path, found.place) == ("k", "limits.yaml:4")


def test_algorithms() -> None:
    bucket = limit("unit: second, requests_per_unit: 5, algorithm: token_bucket, burst: 20, on_store_failure: allow")
    assert (bucket.algorithm, bucket.burst) == (Algorithm.TOKEN_BUCKET, 20)
    assert bucket.on_store_failure is OnStoreFailure.ALLOW
    assert (
        limit("unit: second, requests_per_unit: 5, algorithm: sliding_window").algorithm is Algorithm.SLIDING_WINDOW
    )


def test_what_is_not_written_is_as_in_envoyproxy_ratelimit() -> None:
    found = limit("unit: week, requests_per_unit: 5")
    assert (found.algorithm, found.multiplier, found.calendar) == (Algorithm.FIXED_WINDOW, 1, None)
    assert found.charge_denied
    assert found.on_store_failure is None
    assert found.seconds == 7 * 86_400
    assert (found.shadow, found.quota, found.unlimited, found.burst, found.tag) == (False, False, False, None, "")


def test_flags_and_metadata_of_the_descriptor_are_its_limits_own() -> None:
    (found,) = domain("""
domain: d
descriptors:
- key: k
  shadow_mode: true
  quota_mode: false
  metadata: {team: {name: core, seats: 3, list: [1, null, x]}}
  rate_limit: {unit: day, requests_per_unit: 1}
""").limits()
    assert found.shadow
    assert found.metadata == {"team": {"name": "core", "seats": 3, "list": [1, None, "x"]}}


def test_a_file_with_a_problem_has_no_value_and_all_its_problems() -> None:
    reading = parse(
        "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: fortnight}}\n- {kay: b}\n- {key: c}\n- {key: c}\n",
        "f.yaml",
    )
    assert reading.value is None
    assert [problem.where for problem in reading.problems if problem.is_error] == [
        "f.yaml:3:31",
        "f.yaml:4:4",
        "f.yaml:6:9",
    ]


def test_what_cannot_be_read_is_a_problem_like_any_other() -> None:
    for content in (OSError(13, "Permission denied"), b"\xff", "", "domain: [", "\x00"):
        reading = parse(content, "f.yaml")
        assert reading.value is None
        assert has_errors(reading.problems)


def test_a_rate_limit_config_as_json_is_read() -> None:
    found = domain(
        '{"name": "r", "domain": "d", "descriptors": [{"key": "k", "value": "v", "rate_limit": '
        '{"unit": "MINUTE", "requests_per_unit": 3}, "shadow_mode": true}]}'
    )
    assert [(one.requests, one.shadow, one.path) for one in found.limits()] == [(3, True, "k_v")]


def test_data_that_no_file_holds() -> None:
    data = {"domain": "d", "descriptors": [{"key": "k", "rate_limit": {"unit": "minute", "requests_per_unit": 3}}]}
    reading = parse_data(data, "routes/checkout.yaml")
    assert reading.value is not None
    assert [one.place for one in reading.value.descriptors[0].limits] == ["routes/checkout.yaml"]
    broken = parse_data({"domain": "d", "descriptors": [{"key": "k", "rate_limit": {}}]}, "routes/checkout.yaml")
    assert broken.value is None
    assert any("unit is missing" in problem.message for problem in broken.problems)


def test_the_collector_does_not_look_through_a_document() -> None:
    """It holds every thread for as long as it takes: more than a second with ten thousand limits."""
    seen: list[int] = []

    def look(phase: str, _: object) -> None:
        if phase == "start":
            seen.append(sum(isinstance(one, yaml.Node) for one in gc.get_objects()))

    lines = [f"- {{key: k, value: v{number}}}\n" for number in range(2_000)]
    gc.callbacks.append(look)
    try:
        parse("domain: d\ndescriptors:\n" + "".join(lines), "d.yaml")
    finally:
        gc.callbacks.remove(look)
    assert not any(seen)
