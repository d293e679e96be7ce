"""`--keys compatible`: the service reads and writes the counters that envoyproxy/ratelimit has, seen at the store.

NAMES is what envoyproxy/ratelimit (commit f2fb157, July 2026) left in a Valkey when it was asked for these
descriptors. There each counter lived for its unit and from 0 to 300 seconds more. Asked at the same time, 64 clients
of it and of this service together passed as often as a limit of 300 says, five times of five.
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.ratelimit.counters.valkey import Valkey
from tests.ratelimit.service.clients import Caller, ask, connected, request
from tests.ratelimit.service.replica import Replica, limit_file
from tests.ratelimit.service.test_exact import HOSTS

JITTER_S: Final = 300
LIMITS: Final[list[dict[str, Any]]] = [
    {"key": "k", "rate_limit": {"unit": "hour", "requests_per_unit": 300}},
    {
        "key": "y",
        "value": "p*",
        "rate_limit": {"unit": "year", "requests_per_unit": 50},
        "descriptors": [{"key": "z", "rate_limit": {"unit": "day", "requests_per_unit": 20}}],
    },
    {"key": "s", "value": "p*", "share_threshold": True, "rate_limit": {"unit": "week", "requests_per_unit": 20}},
    {"key": "month", "rate_limit": {"unit": "month", "requests_per_unit": 20}},
]
HOUR_S, DAY_S = 3600, 86_400
NAMES: Final = {
    "k=": ("mesh_k__", HOUR_S, 300),
    "k=a_b": ("mesh_k_a_b_", HOUR_S, 300),
    "k=a:b|c": ("mesh_k_a:b|c_", HOUR_S, 300),
    "k=ключ": ("mesh_k_ключ_", HOUR_S, 300),
    "y=px": ("mesh_y_px_", 365 * DAY_S, 50),
    "y=px z=q": ("mesh_y_px_z_q_", DAY_S, 20),
    "s=pa": ("mesh_s_p*_", 7 * DAY_S, 20),
    "month=1": ("mesh_month_1_", 30 * DAY_S, 20),
}
"""By descriptor: the name without the second in which the window began, the window's length, and the limit."""


class Shared(NamedTuple):
    """Ours, and the Valkey that the other one uses too."""

    caller: Caller
    valkey: Valkey


@pytest.fixture(params=HOSTS)
async def shared(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shared]:
    limit_file(tmp_path / "limits", "mesh", LIMITS)
    async with (
        Valkey() as valkey,
        Replica(
            tmp_path / "limits", tmp_path / "log", "--keys", "compatible", host=request.param, redis=valkey.url
        ) as replica,
        connected(replica.port) as (caller,),
    ):
        await replica.ready()
        yield Shared(caller, valkey)


async def test_counters_have_its_names_and_times_to_live(shared: Shared) -> None:
    for descriptor, (name, length, limit) in NAMES.items():
        began = _window(length)
        status = (await ask(shared.caller, request(descriptor))).statuses[0]
        assert status.limit_remaining == limit - 1
        keys = await shared.valkey.ask("KEYS", _literal(name) + "[0-9]*")
        if _window(length) == began:  # else a window ended just now
            assert [key.decode() for key in keys] == [f"{name}{began}"]
            assert await shared.valkey.ask("GET", keys[0]) == b"1"
            assert length - 60 <= await shared.valkey.ask("TTL", keys[0]) <= length + JITTER_S
            assert 0 < status.duration_until_reset.seconds <= length
    assert await shared.valkey.ask("DBSIZE") >= len(NAMES)


async def test_what_it_has_counted_counts(shared: Shared) -> None:
    for descriptor, (name, length, limit) in NAMES.items():
        for began in (_window(length), _window(length) + length):
            await shared.valkey.ask("SET", f"{name}{began}", limit - 1, "EX", length + 100)
        answers = [await ask(shared.caller, request(descriptor)) for _ in range(2)]
        if _window(length) == began - length:
            assert [answer.overall_code for answer in answers] == [1, 2]
            assert await shared.valkey.ask("GET", f"{name}{_window(length)}") == str(limit + 1).encode()


def _window(length: int) -> int:
    now = int(time.time())
    return now - now % length


def _literal(name: str) -> str:
    return name.replace("*", "\\*")
