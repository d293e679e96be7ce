"""Counters of callers who are denied are found by what they send, and told by what they are held to."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ratelimit.counters.keys import CompatibleKeys
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.store import Counter
from ratelimit.http.counting import Beginning, Counters
from ratelimit.limits.tree import LimitTree
from swashplate.cli import main
from tests.ratelimit.counters.valkey import Valkey
from tests.ratelimit.limits.trees import tree
from tests.swashplate.ratelimit_site import Running, Site

SHARED = """\
domain: shop
descriptors:
  - key: sku
    value: pro_*
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 1}
    descriptors:
      - key: path
        rate_limit: {unit: hour, requests_per_unit: 1}
"""
BUCKET = """\
domain: shop
descriptors:
  - key: client
    rate_limit: {unit: hour, requests_per_unit: 60, algorithm: token_bucket, burst: 3}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def run(here: Running, command: str, *arguments: str) -> Result:
    words = ["ratelimit", "counters", command, "--server", here.http, "shop", *arguments]
    return await asyncio.to_thread(CliRunner().invoke, main, words)


def rows(result: Result) -> list[list[str]]:
    """Cells are apart by two spaces."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in result.stdout.splitlines()[1:]]


@pytest.mark.parametrize("keys", ["own", "compatible"])
async def test_a_counter_that_values_share_is_found_by_any_of_them(site: Site, keys: str) -> None:
    site.write(SHARED)
    async with (
        Valkey() as valkey,
        site.serving(redis=valkey.url, ratelimit_keys=keys, ratelimit_counters=True) as here,
    ):
        await here.ready()
        for _ in range(2):
            answer = await here.ask({"sku": "pro_1"}, {"sku": "pro_1", "path": "/a"})
        assert answer.overall_code == 2, "over its limit"
        assert [row[:4] for row in rows(await run(here, "show", "sku=pro_1"))] == [["sku=pro_*", "3600", "2", "1"]]
        assert len(rows(await run(here, "list", "sku=pro_1"))) == 2
        assert [row[0] for row in rows(await run(here, "show", "sku=pro_2", "path=/a"))] == ["sku=pro_* path=/a"]
        assert (await run(here, "show", "sku=pro_1", "path=/b")).exit_code == 1
        assert (await run(here, "reset", "sku=pro_1")).stdout == "2 counters reset\n"
        assert (await here.ask({"sku": "pro_1"})).overall_code == 1


async def test_a_bucket_is_told_by_what_it_holds(site: Site) -> None:
    site.write(BUCKET)
    async with site.serving(ratelimit_counters=True) as here:
        await here.ready()
        for _ in range(4):
            await here.ask({"client": "web"})
        shown = await run(here, "show", "client=web")
        assert rows(shown)[0][:4] == ["client=web", "bucket3600", "3", "60, burst 3"]
        found = json.loads((await run(here, "show", "client=web", "-o", "json")).stdout)
        assert found["counters"][0]["burst"] == 3


class Held(MemoryStore):
    """Holds these counters, in this order."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._held = [Counter(name.encode(), number, 100.0) for number, name in enumerate(names)]

    async def counters(self, prefix: bytes, most: int) -> Sequence[Counter]:
        return [counter for counter in self._held if counter.key.startswith(prefix)][:most]


class Subject:
    keys = CompatibleKeys()

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.tree: LimitTree = tree(text)
        self.store = Held(names)


def minutes(*starts: int) -> Counters:
    limits = "domain: shop\ndescriptors:\n- key: client\n  rate_limit: {unit: minute, requests_per_unit: 3}\n"
    return Counters(Subject(limits, [f"shop_client_web_{start}" for start in starts]), now=lambda: 1_790_000_099.9)


@pytest.mark.parametrize("most", [1, 3, 100])
async def test_windows_that_have_ended_come_last_though_they_are_remembered(most: int) -> None:
    found = await minutes(1_790_000_040 - 120, 1_790_000_040 - 60, 1_790_000_040).listed("shop", Beginning(), most)
    assert [(each["hits"], each["ended"]) for each in found] == [(2, False), (0, True), (1, True)][:most]


async def test_what_two_questions_find_is_listed_once() -> None:
    subject = Subject(SHARED, ["shop_sku_pro_*_x_1790000000"])
    found: Sequence[Mapping[str, object]] = await Counters(subject).listed(
        "shop", Beginning([("sku", "pro_*_x")]), 100
    )
    assert len(found) == 1


async def test_a_window_that_has_ended_is_marked_and_is_none_to_show(site: Site) -> None:
    site.write(SHARED)
    hour = int(time.time()) // 3600 * 3600
    async with (
        Valkey() as valkey,
        site.serving(redis=valkey.url, ratelimit_keys="compatible", ratelimit_counters=True) as here,
    ):
        await here.ready()
        await valkey.ask("SET", f"shop_sku_pro_*_{hour - 3600}", 7, "EX", 287)
        shown = await run(here, "show", "sku=pro_1")
        assert shown.exit_code == 1
        assert rows(shown)[0][:4] == ["sku=pro_*", "3600, ended", "7", "1"]
        assert rows(shown)[0][4].endswith("s")
