"""Names of counters as envoyproxy/ratelimit makes them, read by the limits that there are."""

from hypothesis import given
from hypothesis import strategies as st

from ratelimit.counters.keys import CompatibleKeys
from ratelimit.limits.joined import Named, named
from ratelimit.limits.tree import DomainTree
from tests.ratelimit.limits.trees import tree

AT = 1_790_000_040
"""A minute begins, and no hour."""

SHOP = tree(
    """
domain: shop
descriptors:
- key: client
  rate_limit: {unit: minute, requests_per_unit: 3}
- key: client
  value: web
  rate_limit: {unit: minute, requests_per_unit: 4}
  descriptors:
  - key: path
    rate_limit: {unit: minute, requests_per_unit: 5}
- key: user_name
  value: b*
  rate_limit: {unit: second, requests_per_unit: 6}
- key: user
  rate_limit: {unit: hour, requests_per_unit: 7}
- key: a
  rate_limit: {unit: second, requests_per_unit: 8}
  descriptors:
  - key: b
    rate_limit: {unit: second, requests_per_unit: 9}
"""
).domains["shop"]


def read(text: str) -> tuple[str, int] | None:
    found = named(SHOP, text)
    return None if found is None else (" ".join("=".join(entry) for entry in found.entries), found.limit.requests)


def test_names_are_read_by_the_descriptors_that_there_are() -> None:
    assert read(f"client_ios_{AT}") == ("client=ios", 3)
    assert read(f"client_a_b_c_{AT}") == ("client=a_b_c", 3)
    assert read(f"client__{AT}") == ("client=", 3)
    assert read(f"user_name_bob_{AT}") == ("user_name=bob", 6), "no hour begins then"
    assert read(f"user_name_bob_{AT // 3600 * 3600}") is None, "user=name_bob could be meant"
    assert read(f"user_x_{AT // 3600 * 3600}") == ("user=x", 7)


def test_what_could_be_several_or_none_is_not_told() -> None:
    assert read(f"client_web_path_x_{AT}") is None, "client=web path=x, or client=web_path_x"
    assert read(f"a_1_b_2_{AT}") is None, "a=1 b=2, or a=1_b_2"
    assert read(f"other_x_{AT}") is None
    assert read("client_web_x") is None
    assert read("") is None


def test_values_that_share_a_counter_are_in_no_name() -> None:
    shared = tree(
        """
domain: shop
descriptors:
- key: sku
  value: pro_*
  share_threshold: true
  rate_limit: {unit: minute, requests_per_unit: 3}
  descriptors:
  - key: path
    rate_limit: {unit: minute, requests_per_unit: 3}
"""
    ).domains["shop"]
    found = named(shared, f"sku_pro_*_path_x_{AT}")
    assert found is not None, "and not sku=pro_*_path_x"
    assert (found.entries, found.ends_s) == ((("sku", "pro_*"), ("path", "x")), AT + 60)
    assert named(shared, f"sku_pro_1_{AT}") is None


def test_a_name_made_to_take_long_is_given_up() -> None:
    assert read(f"client_{'_' * 100_000}_{AT}") is None


@given(st.lists(st.tuples(st.text("ab_", min_size=1, max_size=3), st.text("ab_", max_size=3)), max_size=3))
def test_what_is_told_makes_the_name_again(entries: list[tuple[str, str]]) -> None:
    keys = CompatibleKeys()
    name = keys.tail(entries).decode() + str(AT)
    found: Named | None = named(SHOP, name)
    if found is not None:
        assert keys.tail(found.entries).decode() + str(AT) == name
        assert isinstance(SHOP, DomainTree)
        assert found.limit in (SHOP.match(found.entries) or ((),))[0]
