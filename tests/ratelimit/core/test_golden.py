"""What envoyproxy/ratelimit answered, call by call, is what is answered here; `golden/README.md` says how it was got.

Where a case says `here` that is on purpose, and `why`.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format

from ratelimit.core.options import HeaderNames, Options
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.over_limit import OverLimitMemory
from ratelimit.counters.store import CounterStore
from ratelimit.stats import RateLimitStats
from tests.ratelimit.core.calls import NOW_US, Response, core_of, decided, in_bytes

GOLDEN = Path(__file__).parent / "golden"
COUNTED = ("total_hits", "over_limit", "near_limit", "within_limit", "shadow_mode")


@pytest.mark.parametrize("remembering", [False, True], ids=["asked", "remembered"])
@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.yaml")))
def test_answers_as_envoyproxy_ratelimit(name: str, remembering: bool) -> None:
    """Whether what is over its limit is asked for again, or remembered."""
    case = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text())
    store: CounterStore = MemoryStore(now_us=lambda: NOW_US)
    if remembering:
        store = OverLimitMemory(store, clock=lambda: 100.0)
    core = core_of(case["limits"], _options(case["settings"]), store)
    for number, call in enumerate(case["calls"]):
        (ended,) = decided(core, in_bytes(call["request"]))
        found = ended[0].name if isinstance(ended, tuple) else _plain(ended)
        assert found == call.get("here", call["answer"]), f"call {number}: {call['request']}"
        assert ("why" in call) == ("here" in call)
    assert _counted(core.stats) == case.get("stats_here", case["stats"])
    assert core.stats.global_shadow_mode == case["global_shadow_mode"]


def test_every_difference_is_one_that_the_docs_tell() -> None:
    told = (Path(__file__).parents[3] / "docs/design/rate-limit-core.md").read_text()
    for path in GOLDEN.glob("*.yaml"):
        for call in yaml.safe_load(path.read_text())["calls"]:
            assert call.get("why", "") in told


def _options(settings: dict[str, str]) -> Options:
    """The options that are the settings of environment variables there."""
    headers = HeaderNames(limit=settings.get("LIMIT_LIMIT_HEADER", HeaderNames().limit))
    return Options(
        shadow_mode="SHADOW_MODE" in settings,
        quota_mode="QUOTA_MODE" in settings,
        headers=headers if "LIMIT_RESPONSE_HEADERS_ENABLED" in settings else None,
        dynamic_metadata="RESPONSE_DYNAMIC_METADATA" in settings,
    )


def _plain(answer: bytes) -> Any:
    """An answer as the cases have it: whatever time is left until a window ends is 1 s."""
    message = Response.FromString(answer)
    for status in message.statuses:
        if status.HasField("duration_until_reset"):
            assert status.duration_until_reset.seconds >= 1
            status.duration_until_reset.seconds = 1
    for header in message.response_headers_to_add:
        if header.key == HeaderNames().reset:
            header.value = "1"
    return json_format.MessageToDict(message)


def _counted(stats: RateLimitStats) -> dict[str, dict[str, int]]:
    """What is not 0, by series."""
    counted = {
        f"{counts.domain}.{counts.path}": {name: n for name in COUNTED if (n := getattr(counts, name))}
        for counts in stats.series()
    }
    for domain, count in stats.domain_not_found.items():
        counted[domain] = {"domain_not_found": count}
    return {path: counts for path, counts in counted.items() if counts}
