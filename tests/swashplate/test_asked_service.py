"""The rate limit service that Envoys are told to ask: status says when it is not well, and nothing waits for it."""

from io import StringIO
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from swashplate.address import Address
from swashplate.asked_service import AskedService
from swashplate.status import SourceReport
from swashplate.status_text import show
from tests.e2e.harness.ports import free_port
from tests.swashplate import ratelimit_site
from tests.swashplate.reports import NOW, a_report
from tests.swashplate.site import Running, Site, until


@pytest.fixture
def service(tmp_path: Path) -> ratelimit_site.Site:
    folder = tmp_path / "service"
    folder.mkdir()
    return ratelimit_site.Site(folder)


def asking(port: int) -> AskedService:
    return AskedService(Address("127.0.0.1", port), "here", structlog.get_logger(), every_s=0.02)


async def test_a_service_that_goes_away_and_comes_back_is_told_of(service: ratelimit_site.Site) -> None:
    service.write()
    port = free_port()
    asked = asking(port)
    with capture_logs() as logs:
        asked.start()
        try:
            await until(lambda: asked.report().state == "stale")
            assert asked.report().last_sync is None
            async with service.serving(ratelimit_listen=f"127.0.0.1:{port}") as here:
                await here.ready()
                await until(lambda: asked.report().state == "fresh")
                assert asked.report().notes == ()
                here.server.limiter.stopping()
                await until(lambda: asked.report().state == "stale")
                (note,) = asked.report().notes
                assert "NOT_SERVING" in note
            await until(lambda: any("does not answer" in note for note in asked.report().notes))
        finally:
            await asked.stop()
    events = [log["event"] for log in logs if "that Envoys ask" in log["event"]]
    assert [event.partition(":")[0] for event in events] == [
        "the rate limit service that Envoys ask is not well",
        "the rate limit service that Envoys ask is well again",
        "the rate limit service that Envoys ask is not well",
    ]


async def test_status_has_a_line_of_it_and_all_is_in_force_without_it(tmp_path: Path) -> None:
    port = free_port()
    site = Site(tmp_path, settings={"ratelimit_service": f"127.0.0.1:{port}"})
    site.write_all()

    def line(here: Running) -> SourceReport:
        (found,) = (source for source in here.plane.status().sources if source.name == "ratelimit-service")
        return found

    async with site.running() as here:
        await until(lambda: line(here).state == "stale")
        assert line(here).error is None
        await until(lambda: here.plane.status().in_force)
        out = StringIO()
        show(a_report(sources=(line(here),)), NOW, out)
        shown = "\n".join(row for row in out.getvalue().splitlines() if row.startswith("ratelimit-service"))
        assert f"127.0.0.1:{port}" in shown
        assert "asked from here, it does not answer: UNAVAILABLE" in shown


async def test_nobody_is_asked_where_envoys_ask_this_server(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.write_all()
    async with site.running() as here:
        assert "ratelimit-service" not in [source.name for source in here.plane.status().sources]
