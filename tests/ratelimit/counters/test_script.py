"""The script in a real Valkey decides as the plain functions do, number for number, whatever comes in one turn."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ratelimit.counters.algorithms import US, State, decide
from ratelimit.counters.check import MOST, Algorithm, Calendar, Call, Check, Failed, Outcome, Rule, Verdict
from ratelimit.counters.redis import batch
from ratelimit.counters.redis.connection import Connection, connect
from ratelimit.counters.redis.settings import RedisSettings
from ratelimit.counters.redis.turn import Part, Turn
from ratelimit.counters.stats import StoreStats
from ratelimit.unit import Unit
from tests.ratelimit.counters.asking import redis_store, turn, verdict
from tests.ratelimit.counters.valkey import HOST, Valkey

NOW_US = 1_790_000_123_456_789
RULES = st.one_of(
    st.builds(
        Rule,
        st.one_of(st.integers(0, 9), st.sampled_from([1000, 2**32 - 1])),
        st.sampled_from([1, 60, 31_536_000]),
        st.sampled_from(Algorithm),
        burst=st.sampled_from([0, 0, 3, 50]),
        charge_denied=st.booleans(),
        denies=st.booleans(),
    ),
    st.builds(
        Rule,
        st.integers(0, 9),
        st.just(0),
        calendar=st.builds(Calendar, st.sampled_from([Unit.DAY, Unit.MONTH]), st.just("Europe/Berlin")),
        charge_denied=st.booleans(),
    ),
)
HITS = st.one_of(st.integers(-4, 6), st.sampled_from([MOST, -MOST, MOST - 1, 10**6]))
PLAIN = st.builds(Rule, st.integers(0, 9), st.sampled_from([1, 60]))
PAUSES = st.one_of(st.integers(-2 * US, 100 * US), st.sampled_from([0, 1, 40 * 86_400 * US]))


def calls_of(rules: Sequence[Rule], hits: st.SearchStrategy[int]) -> st.SearchStrategy[list[Call]]:
    """Every rule has two counters of its own; now and then a counter meets two rules."""
    keys = st.sampled_from([b"%d.%d" % (number, other) for number in range(len(rules)) for other in range(2)])
    check = st.tuples(keys, st.booleans(), hits).map(
        lambda made: Check(made[0], rules[0] if made[1] and made[2] == 3 else rules[int(made[0][:1])], made[2])
    )
    return st.lists(st.lists(check, min_size=1, max_size=3).map(tuple), min_size=1, max_size=12)


HISTORIES = st.one_of(
    st.lists(RULES, min_size=3, max_size=3).flatmap(lambda rules: st.lists(st.tuples(PAUSES, calls_of(rules, HITS)))),
    st.lists(PLAIN, min_size=3, max_size=3).flatmap(
        lambda rules: st.lists(st.tuples(PAUSES, calls_of(rules, st.integers(0, 5))))
    ),
)


class Told:
    """A script whose clock is told, and whose counters do not end while a test runs. `lives`: how long it says they
    live."""

    def __init__(self, text: str, now_us: int, lives: str) -> None:
        seconds, rest = divmod(now_us, US)
        for old, new in (
            ("redis.pcall('TIME')", f"{{'{seconds}', '{rest}'}}"),
            (f"max(1, min(ceil({lives} / US), 1e10))", "1000"),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
        self.text = text
        self.sha = "not loaded"


class Server:
    """One Valkey for all examples, on a loop that lives as long."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.valkey = Valkey()
        self._numbers = count()
        self.runner.run(self.valkey.start())
        self.connection: Connection = self.runner.run(
            connect(RedisSettings(addresses=((HOST, self.valkey.port),)), (HOST, self.valkey.port), ())
        )

    def close(self) -> None:
        async def closed() -> None:
            self.connection.abort("the test is over")
            await self.connection.lost
            await self.valkey.__aexit__()

        self.runner.run(closed())
        self.runner.close()

    def space(self) -> bytes:
        return b"%d/" % next(self._numbers)

    def decide(self, calls: Sequence[Call], space: bytes, now_us: int, *, ahead_s: int = 0) -> list[list[Outcome]]:
        """One turn, with all keys in a space of their own, at this time; our own clock goes ahead by `ahead_s`."""
        moved = [tuple(Check(space + check.key, check.rule, check.hits) for check in call) for call in calls]
        found: dict[int, list[Outcome]] = {}
        under_way = Turn(
            moved,
            [inf] * len(moved),
            inf,
            lambda place, told: found.update({place: list(told)}),
            _closed,
            StoreStats(),
        )
        parts = [Part(under_way, place, call) for place, call in enumerate(moved)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch, "SCRIPT", Told(batch.SCRIPT.text, now_us, "resets[k]"))
            patch.setattr(batch, "FIXED_SCRIPT", Told(batch.FIXED_SCRIPT.text, now_us, "reset"))
            made = batch.make_batch(parts, now_us / US + ahead_s)
            reply = self.runner.run(self._ask(made.packed(whole=True)))
        assert isinstance(reply, list), reply
        made.settle(reply, StoreStats())
        return [found[place] for place in range(len(calls))]

    async def _ask(self, command: bytes) -> object:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.connection.send(command, (answer.set_result,))
        return await answer


def _closed(turn: Turn) -> None:
    """Nobody waits for it."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def _shown(outcomes: Sequence[Sequence[Outcome]]) -> list[list[object]]:
    return [[outcome.kind if isinstance(outcome, Failed) else outcome for outcome in call] for call in outcomes]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HISTORIES)
def test_a_turn_is_decided_as_its_calls_would_be_one_at_a_time(
    server: Server, history: list[tuple[int, list[Call]]]
) -> None:
    whole, single = server.space(), server.space()
    states: dict[bytes, State] = {}
    now_us = NOW_US
    for pause, calls in history:
        now_us += pause
        expected = _shown([decide(call, states, now_us) for call in calls])
        assert _shown(server.decide(calls, whole, now_us)) == expected
        if len(history) < 4:
            assert _shown([server.decide([call], single, now_us)[0] for call in calls]) == expected


def test_a_check_that_failed_stays_failed_where_a_denied_call_is_not_counted(server: Server) -> None:
    window, bucket = Rule(2, 60, charge_denied=False), Rule(2, 60, Algorithm.TOKEN_BUCKET)
    call = (Check(b"over", window, 3), Check(b"k", window, 1), Check(b"k", bucket, 1), Check(b"k", window, 0))
    space = server.space()
    states: dict[bytes, State] = {}
    for _ in range(2):
        expected = _shown([decide(call, states, NOW_US)])
        assert [isinstance(outcome, Verdict) for outcome in expected[0]] == [True, True, False, True]
        assert _shown(server.decide([call], space, NOW_US)) == expected
    assert states == {}


@pytest.mark.parametrize("ahead_s", [-80_000, -1, 0, 1, 80_000])
@pytest.mark.parametrize("unit", [Unit.DAY, Unit.MONTH])
def test_a_calendars_window_is_the_one_that_the_stores_clock_is_in(server: Server, unit: Unit, ahead_s: int) -> None:
    rule, space = Rule(3, 0, calendar=Calendar(unit, "Europe/Berlin")), server.space()
    states: dict[bytes, State] = {}
    last_second = 1_772_319_599  # 2026-02-28 23:59:59 in Berlin
    for now_s in (last_second - 3600, last_second, last_second + 1, last_second + 3600):
        calls = [(Check(b"k", rule, 2),)]
        assert server.decide(calls, space, now_s * US, ahead_s=ahead_s) == [decide(calls[0], states, now_s * US)]


@pytest.mark.parametrize("charge_denied", [True, False])
@pytest.mark.parametrize(
    ("unit", "multiple", "zone"),
    [
        (Unit.DAY, 30_000, "UTC"),
        (Unit.DAY, 30_000, "Europe/Berlin"),
        (Unit.MONTH, 788, "UTC"),
        (Unit.YEAR, 85, "UTC"),
    ],
)
def test_a_calendars_window_may_have_begun_in_1970_or_before(
    server: Server, unit: Unit, multiple: int, zone: str, charge_denied: bool
) -> None:
    rule = Rule(3, 0, calendar=Calendar(unit, zone, multiple), charge_denied=charge_denied)
    space = server.space()
    states: dict[bytes, State] = {}
    for later_s in range(3):
        call = (Check(b"k", rule, 2),)
        expected = decide(call, states, NOW_US + later_s * US)
        assert server.decide([call], space, NOW_US + later_s * US) == [expected]


def test_a_bucket_of_another_size_goes_on_with_what_was_used(server: Server) -> None:
    space, now_us = server.space(), NOW_US
    states: dict[bytes, State] = {}
    for limit, hits in ((3, 2), (2**31, 7), (2**31 + 1, 10**9 + 7), (1000, 3), (7, 1), (2**32 - 1, 0)):
        now_us += 1_234_567
        call = (Check(b"k", Rule(limit, 31_536_000, Algorithm.TOKEN_BUCKET), hits),)
        assert server.decide([call], space, now_us) == [decide(call, states, now_us)]


@pytest.fixture
async def valkey() -> AsyncIterator[Valkey]:
    async with Valkey() as server:
        yield server


async def test_a_counter_lives_until_its_window_ends_and_one_without_an_end_heals(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        for algorithm in Algorithm:
            key = algorithm.value.encode()
            reset_s = (await verdict(store, key, Rule(5, 3600, algorithm))).reset_s
            assert reset_s - 5 <= await valkey.ask("TTL", key) <= reset_s
            await valkey.ask("PERSIST", key)
            await verdict(store, key, Rule(5, 3600, algorithm))
            assert 0 < await valkey.ask("TTL", key) <= 4000


async def test_windows_go_by_the_stores_clock(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        found = await verdict(store, b"k", Rule(5, 86_400))
        seconds = int((await valkey.ask("TIME"))[0])
        assert 0 <= found.reset_s - (86_400 - seconds % 86_400) <= 15 or found.reset_s < 15


async def test_a_look_and_a_refund_make_no_key(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        for algorithm in Algorithm:
            await verdict(store, b"k", Rule(5, 60, algorithm), 0)
            await verdict(store, b"k", Rule(5, 60, algorithm), -3)
        assert await valkey.ask("DBSIZE") == 0


async def test_one_bad_key_leaves_the_others_of_its_call_counted_and_itself_as_it_was(valkey: Valkey) -> None:
    rule, spared = Rule(5, 60), Rule(5, 60, charge_denied=False)
    await valkey.ask("HSET", "hash", "field", "value")
    await valkey.ask("SET", "text", "somebody else's")
    async with redis_store(valkey.url) as store:
        for used in (rule, spared):
            call = tuple(Check(key, used, 1) for key in (b"before", b"hash", b"text", b"after"))
            ((first, hash_, text, last),) = await turn(store, [call])
            assert isinstance(first, Verdict)
            assert isinstance(last, Verdict)
            assert isinstance(hash_, Failed)
            assert isinstance(text, Failed)
            assert hash_.kind == text.kind == "wrong_type"
            assert "something else" in text.detail
        assert (await verdict(store, b"before", rule, 0)).before == 2
        assert (await verdict(store, b"after", rule, 0)).before == 2
    assert await valkey.ask("HGET", "hash", "field") == b"value"
    assert await valkey.ask("GET", "text") == b"somebody else's"


async def test_values_can_be_read_by_people(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        for algorithm, pattern in (
            (Algorithm.FIXED_WINDOW, rb"w \d+ 2"),
            (Algorithm.SLIDING_WINDOW, rb"s \d+ (2|1 (0 )*1)"),
            (Algorithm.TOKEN_BUCKET, rb"b 60000000 \d+ \d+"),
        ):
            await verdict(store, b"k", Rule(5, 60, algorithm))
            await verdict(store, b"k", Rule(5, 60, algorithm))
            assert re.fullmatch(pattern, await valkey.ask("GET", "k"))
            await valkey.ask("DEL", "k")
