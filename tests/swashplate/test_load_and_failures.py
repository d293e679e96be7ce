"""What Envoys report, by clients that report it: load, and requests that failed."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

import envoy_api
from tests.swashplate.asking import (
    LOAD,
    LOGS,
    channel,
    failed_requests,
    load_request,
    read,
    site_that_ranks_errors,
)
from tests.swashplate.site import DEADLINE_S, Running, Site, until


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_that_ranks_errors(tmp_path)


class TestLoad:
    @contextlib.asynccontextmanager
    async def reporter(self, here: Running) -> AsyncIterator[Any]:
        async with channel(here) as opened:
            call = opened.stream_stream(f"/{LOAD}.LoadReportingService/StreamLoadStats")()
            await call.write(envoy_api.encode(envoy_api.message(f"{LOAD}.LoadStatsRequest", node={"id": "n"})))
            yield call
            call.cancel()

    async def test_reports_are_added_up_and_end_with_their_stream(self, site: Site) -> None:
        site.settings |= {"load_metrics": True}
        async with site.running() as here, self.reporter(here) as one:
            wanted = envoy_api.message_class(f"{LOAD}.LoadStatsResponse").FromString(await read(one))
            assert wanted.send_all_clusters
            assert not wanted.report_endpoint_granularity
            assert wanted.load_reporting_interval.seconds == 30
            async with self.reporter(here) as two:
                await read(two)
                for call in (one, two):
                    await call.write(load_request("web", total_successful_requests=3, total_requests_in_progress=2))
                await until(lambda: [load.nodes for load in here.plane.status().loads] == [2])
                (load,) = here.plane.status().loads
                assert (load.cluster, load.locality, load.seconds) == ("web", "eu/a", 30.0)
                assert (load.successes, load.errors, load.in_flight) == (6, 0, 4)
                assert here.metric("swashplate_load_in_flight 4.0")
                await one.write(load_request("web", total_error_requests=1))
                await until(lambda: here.plane.status().loads[0].errors == 1)
            await until(lambda: [load.nodes for load in here.plane.status().loads] == [1])
            assert here.metric('swashplate_load_requests_total{outcome="successes"} 6.0')
            assert here.metric('swashplate_cluster_load_requests_total{cluster="web",outcome="errors"} 1.0')

    async def test_by_cluster_only_where_asked_for(self, site: Site) -> None:
        async with site.running() as here, self.reporter(here) as call:
            await call.write(load_request("web", total_error_requests=1))
            await until(lambda: here.metric('swashplate_load_requests_total{outcome="errors"} 1.0'))
            assert 'cluster="web"' not in here.metrics.text().decode()

    async def test_never_asked_with_an_interval_of_zero(self, site: Site) -> None:
        site.settings |= {"load_interval": "0"}
        async with site.running() as here, self.reporter(here) as call:
            await call.done_writing()
            assert await read(call) is aio.EOF

    @pytest.mark.parametrize("data", [b"\xff", load_request("web", total_error_requests=2**53 + 1)])
    async def test_what_is_no_report_ends_the_stream(self, site: Site, data: bytes) -> None:
        async with site.running() as here, self.reporter(here) as call:
            await read(call)
            await call.write(data)
            with pytest.raises(aio.AioRpcError) as refused:
                await read(call)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


class TestFailures:
    async def test_the_most_frequent_are_shown_and_logged(self, site: Site) -> None:
        site.settings |= {"top_errors_interval": "1s"}
        with capture_logs() as lines:
            async with site.running() as here, channel(here) as opened:
                call = opened.stream_unary(f"/{LOGS}.AccessLogService/StreamAccessLogs")()
                await call.write(failed_requests(503, 200, 404, 503))
                await until(lambda: here.plane.status().failures[0].total == 3)
                (failures,) = here.plane.status().failures
                found = [(failure.times, failure.request) for failure in failures.top]
                assert found == [(2, "503 GET http://checkout/a"), (1, "404 GET http://checkout/a")]
                await until(lambda: any(line["event"] == "requests failed" for line in lines))
                await call.done_writing()
                assert await asyncio.wait_for(call, DEADLINE_S) == b""
        line = next(line for line in lines if line["event"] == "requests failed")
        assert line["total"] == 3
        assert line["most"][0] == "2 x 503 GET http://checkout/a"

    async def test_off(self, site: Site) -> None:
        site.settings |= {"top_errors": 0}
        async with site.running() as here, channel(here) as opened:
            assert here.plane.status().failures == ()
            call = opened.stream_unary(f"/{LOGS}.AccessLogService/StreamAccessLogs")()
            with pytest.raises(aio.AioRpcError) as refused:
                await call
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert "access_log" not in json.dumps(here.config())
