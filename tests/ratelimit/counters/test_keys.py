"""Names of counters: no two share one, and all can be read."""

from hypothesis import given, settings
from hypothesis import strategies as st
from redis.crc import key_slot

from ratelimit.counters.check import Algorithm, Calendar, Rule
from ratelimit.counters.keys import CompatibleKeys, HashTag, Keys, window_code
from ratelimit.unit import Unit

TEXTS = st.text(st.sampled_from("ab_:{}1é"), max_size=4)
IDENTITIES = st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple)
RULES = [
    Rule(5, 60),
    Rule(5, 3600),
    Rule(5, 60, Algorithm.SLIDING_WINDOW),
    Rule(5, 60, Algorithm.TOKEN_BUCKET),
    Rule(5, 0, calendar=Calendar(Unit.MONTH, "Europe/Berlin")),
    Rule(5, 0, calendar=Calendar(Unit.MONTH, "UTC", 2)),
]
NAMES = st.tuples(TEXTS, IDENTITIES, st.sampled_from(RULES))


@settings(deadline=None)
@given(NAMES, NAMES, st.sampled_from(HashTag))
def test_two_counters_have_one_key_only_where_they_are_one(one: tuple, other: tuple, tag: HashTag) -> None:  # type: ignore[type-arg]
    keys = Keys(hash_tag=tag)
    assert (keys.key(*one) == keys.key(*other)) == (one == other)


@settings(deadline=None)
@given(NAMES, st.sampled_from(HashTag))
def test_a_key_can_be_read(name: tuple, tag: HashTag) -> None:  # type: ignore[type-arg]
    domain, identity, rule = name
    keys = Keys("p", tag)
    key = keys.key(domain, identity, rule)
    assert key.startswith(keys.of_domain(domain))
    assert keys.read(key) == (domain, window_code(rule), identity)


@settings(deadline=None)
@given(st.binary(max_size=20))
def test_what_is_no_key_is_read_as_none(text: bytes) -> None:
    assert Keys().read(text) is None
    read = Keys().read(b"ratelimit{}" + text)
    assert read is None or read.domain in text.decode()


@settings(deadline=None)
@given(TEXTS, IDENTITIES, IDENTITIES)
def test_the_domain_alone_chooses_the_slot_where_it_is_told_to(domain: str, one: tuple, other: tuple) -> None:  # type: ignore[type-arg]
    keys = Keys(hash_tag=HashTag.DOMAIN)
    assert key_slot(keys.key(domain, one, RULES[0])) == key_slot(keys.key(domain, other, RULES[1]))


def test_a_callers_braces_do_not_choose_the_slot() -> None:
    slots = {key_slot(Keys().key("d", [("k", f"{{x}}{number}")], RULES[0])) for number in range(50)}
    assert len(slots) > 40


def test_a_raised_limit_has_the_same_counter_and_another_window_its_own() -> None:
    keys, identity = Keys(), [("k", "v")]
    assert keys.key("d", identity, Rule(5, 60)) == keys.key("d", identity, Rule(9, 60, charge_denied=False))
    assert keys.key("d", identity, Rule(5, 60)) == b"ratelimit{}1:d2:601:k1:v"


def test_compatible_keys_are_those_of_envoyproxy_ratelimit() -> None:
    keys = CompatibleKeys("pre:")
    assert keys.key("mesh", [("a", "b"), ("c", "")], RULES[0]) == b"pre:mesh_a_b_c__"
