"""Fifty edits under load: none may cost a request, and each must be in force soon.

Every edit has something that its traffic shows: a response header with the edit's number, a subset, an endpoint that
gets requests or gets none any more, a service that answers. It is looked for on connections that were open before
the first edit.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pytest

from tests.e2e.harness.load import Answer, Load
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

ROUNDS = 5
OTHERS = 60
"""Services that nobody edits, so that a change is a small part of what there is."""

MEDIAN_S, SLOWEST_S = 1.0, 5.0
STABLE, CANARY, BETA = {"version": "v41"}, {"version": "v42"}, {"version": "v43"}


@dataclass(frozen=True, slots=True)
class Edit:
    """`apply` writes the files; then `seen` must hold on every connection of a load, or stop to hold with `over`."""

    what: str
    apply: Callable[[], None]
    seen: Callable[[Answer], bool]
    over: bool = False
    of_extra: bool = False


class Story:
    """The files of a service with three subsets, and of an extra service that comes and goes."""

    def __init__(self, site: Site, ups: dict[str, Upstream]) -> None:
        self.site = site
        self.ups = ups
        self.number = 0

    def routes(self, to: dict[str, str], **subsets: dict[str, str]) -> None:
        headers = {"response": {"set": {"x-edit": str(self.number)}}}
        self.site.route(
            "checkout",
            {
                "subsets": {"stable": STABLE, "canary": CANARY, **subsets},
                "rules": [{"name": "main", "to": to, "headers": headers}],
            },
        )

    def endpoints(self, *spare: dict[str, Any]) -> None:
        ups = self.ups
        self.site.service(
            "checkout",
            ups["stable-1"].endpoint(**STABLE),
            ups["stable-2"].endpoint(**STABLE),
            ups["canary"].endpoint(**CANARY),
            ups["beta"].endpoint(**BETA),
            *spare,
        )

    def reroute(self, what: str, to: dict[str, str], **subsets: dict[str, str]) -> Edit:
        self.number += 1
        number = str(self.number)
        return Edit(what, lambda: self.routes(to, **subsets), lambda answer: answer.edit == number)

    def round(self, weight: int) -> Iterator[Edit]:
        """Ten edits that end where they began, but for the weights."""
        split = {"stable": f"{100 - weight}%", "canary": f"{weight}%"}
        spare = self.ups["spare"]
        extra = self.site.services / "extra.yaml"

        def at_spare(answer: Answer) -> bool:
            return answer.endpoint == spare.address

        yield self.reroute("weights moved", split)
        yield self.reroute("a new subset", {"stable": "80%", "canary": "10%", "beta": "10%"}, beta=BETA)
        yield self.reroute("everything to it", {"beta": "100%"}, beta=BETA)
        yield self.reroute("the subset removed", split)
        yield Edit(
            "a service added",
            lambda: self.site.service("extra", self.ups["extra"].endpoint()),
            lambda answer: answer.status == 200,
            of_extra=True,
        )
        yield Edit("an endpoint added", lambda: self.endpoints(spare.endpoint(**STABLE)), at_spare)
        draining = {**spare.endpoint(**STABLE), "health": "draining"}
        yield Edit("an endpoint drained", lambda: self.endpoints(draining), at_spare, over=True)
        yield Edit("an endpoint back", lambda: self.endpoints(spare.endpoint(**STABLE)), at_spare)
        yield Edit("an endpoint removed", self.endpoints, at_spare, over=True)
        yield Edit("a service removed", extra.unlink, lambda answer: answer.status == 404, of_extra=True)


async def test_fifty_edits_cost_no_request(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    # A short drain, so that what an edit left behind is removed while the next ones are under way.
    site = Site(tmp_path, flags=("--rollout-drain", "1s"))
    names = {"stable-1": "stable", "stable-2": "stable", "spare": "stable", "canary": "canary", "beta": "beta"}
    async with AsyncExitStack() as running:
        ups = {
            name: await running.enter_async_context(Upstream(subset))
            for name, subset in {**names, "extra": "extra"}.items()
        }
        story = Story(site, ups)
        story.endpoints()
        story.routes({"stable": "100%"})
        for i in range(OTHERS):
            site.service(f"other-{i}", ups["extra"].endpoint())
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        before = await envoy.clusters()

        took: dict[str, float] = {}
        async with site.load("checkout", rate=40) as load, site.load("extra", connections=2, rate=20) as extra:
            await load.more(20)
            for i in range(ROUNDS):
                for edit in story.round(weight=10 + 10 * i):
                    took[f"{len(took) + 1:2} {edit.what}"] = await _measured(edit, extra if edit.of_extra else load)

        async def tidied() -> bool:
            return await envoy.clusters() == before

        await until(tidied, "what the edits left behind to be removed")

    _report(took, variant)
    assert load.failures() == []
    assert extra.failures(allowed=frozenset({200, 404})) == []
    assert (load.reconnects, extra.reconnects) == (0, 0)
    assert _never_back(load)
    assert len(took) == 50
    assert median(took.values()) < MEDIAN_S
    assert max(took.values()) < SLOWEST_S


async def _measured(edit: Edit, load: Load) -> float:
    start = time.monotonic()
    edit.apply()
    wait = load.over if edit.over else load.in_force
    try:
        return await wait(edit.seen, start, within=SLOWEST_S)
    except TimeoutError as error:
        raise AssertionError(f"{edit.what}: {error}") from error


def _never_back(load: Load) -> bool:
    """Whether no connection went back to an older edit's routes."""
    for connection in {answer.connection for answer in load.answers}:
        edits = [int(answer.edit) for answer in load.answers if answer.connection == connection]
        if edits != sorted(edits):
            return False
    return True


def _report(took: dict[str, float], variant: str) -> None:
    deciles = quantiles(took.values(), n=10)
    print(f"{variant}: in force after {median(took.values()):.3f} s (median), {deciles[-1]:.3f} s (p90)")  # noqa: T201
    for what, seconds in took.items():
        print(f"  {what}: {seconds:.3f} s")  # noqa: T201


async def test_a_bulk_edit_that_goes_out_in_batches(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    """New clusters for every service, published while Envoy is still warming those of the batch before."""
    site = Site(tmp_path, flags=("--debounce-quiet", "20ms", "--debounce-limit", "50ms"))
    names = [f"bulk-{i:03}" for i in range(200)]

    def edit(number: int, service: str) -> None:
        headers = {"response": {"set": {"x-edit": str(number)}}}
        subset = f"s{number}"
        rules = [{"name": "main", "to": subset, "headers": headers}]
        site.route(service, {"subsets": {subset: {"app": "all"}}, "rules": rules})

    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        for name in names:
            site.service(name, upstream.endpoint(app="all"))
            edit(0, name)
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        async with site.load(names[0], connections=2) as first, site.load(names[-1], connections=2) as last:
            await last.more(10)
            start = time.monotonic()
            for name in names:
                edit(1, name)
                await asyncio.sleep(0.002)
            for load in (first, last):
                await load.in_force(lambda answer: answer.edit == "1", start, within=2 * SLOWEST_S)
        for load in (first, last):
            assert load.failures() == []
            assert _never_back(load)
