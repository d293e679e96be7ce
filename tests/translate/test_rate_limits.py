"""A limit and the descriptors that Envoys send for it: they always meet, whatever a request has and lacks."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from envoy_api import EnvoyMessage
from mesh.rate_limit import DOMAIN, Allowance, RateLimit, may_be_missing
from ratelimit.limits.limit import Match
from ratelimit.limits.parse import parse_data
from ratelimit.limits.tree import DomainTree
from ratelimit.unit import Unit
from routes.parse import parse
from routes.rate_limits import limit_file, limits_of
from xds.translate.rate_limits import limit_filter, limited_route
from xds.translate.settings import RateLimiting

ENTRY = {
    "header": st.sampled_from(["x-api-key", "X-User", "header", ":authority"]),
    "query": st.sampled_from(["user", "header:x-user", "a b", "ü"]),
    "address": st.one_of(st.just(True), st.fixed_dictionaries({}, optional={"v4": st.integers(0, 32)})),
    "path": st.just(True),
    "source_cluster": st.just(True),
    "destination_cluster": st.just(True),
    "metadata": st.fixed_dictionaries(
        {"namespace": st.just("jwt"), "path": st.lists(st.sampled_from("ab"), min_size=1)}
    ),
}
UNITS = st.sampled_from([unit.name.lower() for unit in Unit])
ALLOW = st.builds("{}/{} {}s".format, st.integers(0, 2**32 - 1), st.integers(1, 100), UNITS)
VALUES = ["", "gold", "free-1", "free-2", "*", "%", "10.0.0.1", "none"]
LIMIT = st.fixed_dictionaries(
    {"allow": ALLOW},
    optional={
        "per": st.lists(
            st.sampled_from(sorted(ENTRY)).flatmap(lambda key: st.fixed_dictionaries({key: ENTRY[key]})),
            min_size=1,
            max_size=4,
        ),
        "absent": st.sampled_from(["shared", "unlimited"]),
        "values": st.dictionaries(
            st.sampled_from(["gold", "free-*", "free-2", "*"]), ALLOW | st.just("unlimited"), min_size=1
        ),
        "algorithm": st.sampled_from(["fixed_window", "sliding_window", "token_bucket"]),
        "burst": st.integers(1, 2**32 - 1),
        "calendar": st.booleans(),
        "time_zone": st.sampled_from(["UTC", "Europe/Berlin"]),
        "shadow_mode": st.booleans(),
        "charge_denied": st.booleans(),
        "on_store_failure": st.sampled_from(["allow", "deny"]),
        "hits_addend": st.integers(1, 5) | st.just("%BYTES_SENT%"),
        "apply_on_stream_done": st.booleans(),
    },
)


def routes(limits: list[Any]) -> Any:
    document = {"version": 1, "service": "checkout", "namespace": "shop", "rate_limits": limits}
    return parse(yaml.safe_dump(document), "checkout.yaml")


def tree(parsed: Any) -> DomainTree:
    """The domain that the file becomes, which nobody has anything to say against."""
    reading = parse_data(limit_file([parsed.routes]), "routes")
    assert [problem.render() for problem in reading.problems if problem.is_error] == []
    assert reading.value is not None
    assert reading.value.domain == DOMAIN
    return DomainTree(DOMAIN, reading.value.descriptors)


def sent(asked: EnvoyMessage, request: Mapping[str, str]) -> tuple[tuple[str, str], ...] | None:
    """The descriptor that Envoy sends for a request of these parts, by key; None where it sends none."""
    entries = []
    for action in asked.actions:
        kind = action.WhichOneof("action_specifier")
        said = getattr(action, kind)
        if kind == "generic_key":
            entries.append((said.descriptor_key, said.descriptor_value))
            continue
        key = getattr(said, "descriptor_key", "path" if kind == "extension" else kind)
        if key in request:
            entries.append((key, request[key]))
        elif not said.skip_if_absent:
            return None
    return tuple(entries)


def expected(limit: RateLimit, request: Mapping[str, str]) -> Allowance | str | None:
    """What the limit allows the request; "nothing sent" where it is not asked about."""
    if limit.unlimited_absent and any(each.key not in request for each in limit.per):
        return "nothing sent"
    value = request.get(limit.per[-1].key, "") if limit.per else ""
    values = dict(limit.values)
    if value in values and "*" not in value:
        return values[value]
    for pattern, allowance in limit.values if limit.per and limit.per[-1].key in request else ():
        head, star, tail = pattern.partition("*")
        if star and value.startswith(head) and value.endswith(tail):
            return allowance
    return limit.allow


def allowed(match: Match | None) -> Allowance | None:
    """What a tree allows: the one limit that was met."""
    assert match is not None
    (limit,) = match.limits
    return None if limit.unlimited else Allowance(limit.requests, limit.unit.name.lower(), limit.multiplier)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(LIMIT, min_size=1, max_size=3), st.data())
def test_every_descriptor_that_is_sent_meets_its_limit(limits: list[Any], data: st.DataObject) -> None:
    parsed = routes(limits)
    assume(parsed.routes is not None)
    domain = tree(parsed)
    rule = parsed.routes.rules[0]
    for limit in rule.rate_limits:
        present = {
            each.key: data.draw(st.sampled_from(VALUES))
            for each in limit.per
            if not may_be_missing(each) or data.draw(st.booleans())
        }
        wanted = expected(limit, present)
        for asked in limited_route([limit]).rate_limits:
            entries = sent(asked, present)
            if wanted == "nothing sent":
                assert entries is None
            else:
                assert entries is not None
                assert allowed(domain.match(entries)) == wanted


@settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(LIMIT, min_size=1, max_size=3))
def test_limits_of_two_services_never_meet(limits: list[Any]) -> None:
    parsed = routes(limits)
    assume(parsed.routes is not None)
    ids = {limit.id for limit in limits_of([parsed.routes])}
    assert len(ids) == len(limits)
    assert all(each.startswith("shop/checkout/") for each in ids)


def test_all_rules_share_a_limit_of_the_service() -> None:
    rules = [
        {"name": "a", "match": [{"path": "/a"}], "to": "checkout"},
        {"name": "tea", "match": [{"path": "/tea"}], "respond": {"status": 418}},
        {"name": "rest", "to": "checkout", "rate_limits": [{"allow": "1/second"}]},
    ]
    document = {"version": 1, "service": "checkout", "rules": rules, "rate_limits": [{"allow": "9/minute"}]}
    parsed = parse(yaml.safe_dump(document), "checkout.yaml")
    assert parsed.routes is not None
    first, answered, last = (rule.rate_limits for rule in parsed.routes.rules)
    assert [limit.id for limit in first] == ["default/checkout/all-limit-1"]
    assert answered == ()
    assert last == (*first, *last[1:])
    assert last[1].id == "default/checkout/rest-limit-1"
    assert len(limit_file([parsed.routes])["descriptors"]) == 2


@pytest.mark.parametrize("where", [{"cluster": "xds"}, {"cluster": "a|b/c"}, {"address": ("::1", 8081)}])
def test_calls_have_an_authority_that_is_a_host_whatever_the_cluster_is_called(where: dict[str, Any]) -> None:
    asking = limit_filter(RateLimiting(**where)).rate_limit_service.grpc_service  # type: ignore[attr-defined]
    assert asking.envoy_grpc.authority == "ratelimit"
