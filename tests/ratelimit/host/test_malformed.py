"""Requests that the native host's library resets before they are calls; grpcio answers them."""

import asyncio
from typing import Any

import pytest

from ratelimit.host.choice import Kind, has_native
from ratelimit.host.count_watch import CountWatch
from tests.e2e.harness.wait import until
from tests.ratelimit.host.both import Site, calling, outcomes

AUTHORITY = "outbound|8081||ratelimit"


def named(site: Site) -> Any:
    """A channel as Envoy has it for a cluster of that name."""
    return site.channel(options=(("grpc.default_authority", AUTHORITY),))


async def test_an_authority_that_is_no_host_is_answered_or_counted_and_told(kind: Kind) -> None:
    told: list[tuple[int, str]] = []
    more: Any = {"on_malformed": lambda count, what: told.append((count, what))} if kind == "native" else {}
    site = Site(kind, **more)
    site.core.echoes = True
    await site.start()
    async with named(site) as channel:
        answers = await outcomes(*(calling(channel)(b"x", timeout=20) for _ in range(3)))
    if kind == "grpcio":
        assert answers == [b"x"] * 3
    else:
        assert b"x" not in answers
        counts = site.host.counts
        assert (counts.malformed, counts.calls) == (3, 0)
        async with site.channel() as channel:
            assert await calling(channel)(b"good", timeout=20) == b"good"
    await site.host.stop(0)
    if kind == "native":
        assert [count for count, _ in told] == [3]
        assert AUTHORITY in told[0][1]


async def test_it_is_told_at_most_once_in_a_while_and_the_rest_at_the_end() -> None:
    count, told = 0, []
    watch = CountWatch(
        lambda: (count, "odd"), lambda more, what: told.append((more, what)), look_s=0.001, quiet_s=3600
    )
    watch.look()
    assert told == []
    watch.start()
    count = 5

    async def once() -> bool:
        return bool(told)

    await until(once, "the first line")
    count = 12
    watch.look()
    watch.look()
    await asyncio.sleep(0)
    assert told == [(5, "odd")]
    watch.stop()
    watch.stop()
    assert told == [(5, "odd"), (7, "odd")]


@pytest.mark.skipif(not has_native(), reason="grpchost is not installed")
async def test_a_stopped_host_still_has_its_count() -> None:
    site = Site("native")
    await site.start()
    async with named(site) as channel:
        await outcomes(calling(channel)(b"x", timeout=20))
    await site.host.stop(0)
    assert site.host.counts.malformed == 1
