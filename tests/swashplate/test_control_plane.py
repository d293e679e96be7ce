"""The control plane in one process: from real files to what a real gRPC client is sent, over edits and restarts."""

import time
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from operator_files.store import StoreError
from swashplate.address import AddressTakenError
from swashplate.control_plane import ControlPlane
from swashplate.metrics import Metrics
from swashplate.source_report import at
from tests.swashplate.site import BROKEN, EVEN, ROUTES, SERVICES, Running, Site, until
from xds.resources import types
from xds.resources.node import Node

NEW = {"checkout/stable": 9000, "checkout/canary": 1000}
EVENLY = {"checkout/stable": 5000, "checkout/canary": 5000}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write_all()
    return site


@pytest.fixture
def kept(site: Site, tmp_path: Path) -> Site:
    """A site with a state directory."""
    site.settings["state"] = tmp_path / "state"
    return site


async def test_files_are_served(site: Site) -> None:
    async with site.running() as here:
        assert here.weights() == NEW
        assert here.clusters() >= {"checkout", "web"}
        report = here.plane.status()
        assert report.in_force
        assert [(source.name, source.state, source.services) for source in report.sources] == [
            ("service-files", "fresh", 2),
            ("route-files", "fresh", 1),
        ]


async def test_an_edit_is_in_force_and_counted(site: Site) -> None:
    async with site.running() as here:
        with capture_logs() as lines:
            site.write("routes/checkout.yaml", EVEN)
            await until(lambda: here.weights() == EVENLY)
        published = [line for line in lines if line["event"] == "published"]
        # On a busy machine what the start began may be put out in two parts, the second of them now.
        assert published[-1]["services"] == ["checkout"]
        assert any(here.metric(f"swashplate_change_to_push_seconds_count {count}.0") for count in (2, 3))


async def test_edits_of_services_are_in_force(site: Site) -> None:
    async with site.running() as here:
        site.write("services.yaml", SERVICES.replace("name: web", "name: shop"))
        await until(lambda: "shop" in here.clusters() and "web" not in here.clusters())


async def test_a_broken_edit_changes_nothing_and_shows_everywhere(site: Site) -> None:
    async with site.running() as here:
        before = here.config()
        with capture_logs() as lines:
            site.write("routes/checkout.yaml", BROKEN)
            await until(lambda: here.plane.status().problems)
            assert here.config() == before
            report = here.plane.status()
            assert not report.in_force
            assert [problem.code for problem in report.problems] == ["R001"]
            assert "\n" in report.problems[0].text, "the line, with a caret"
            assert here.metric("swashplate_files_in_error 1.0")
            site.write("routes/checkout.yaml", EVEN)
            await until(lambda: here.weights() == EVENLY)
        assert here.plane.status().in_force
        assert here.metric("swashplate_files_in_error 0.0")
        told = [(line["log_level"], line["event"]) for line in lines if line["event"].startswith("file ")]
        file = site.root / "routes/checkout.yaml"
        assert told == [
            (
                "error",
                f"file has an error: {file}:6:7 R001 the shares sum to 105%, not 100% (fix: take 5% off); its "
                "last good version stays in force",
            ),
            ("info", f"file has no errors any more: {file}"),
        ]


async def test_a_file_that_never_was_good_is_told_as_such(site: Site) -> None:
    site.write("routes/checkout.yaml", BROKEN)
    with capture_logs() as lines:
        async with site.running() as here:
            (problem,) = here.plane.status().problems
    assert (problem.in_force, problem.outcome) == ("nothing", "checkout answers 503 R001")
    (told,) = [line["event"] for line in lines if line["log_level"] == "error"]
    assert told.endswith("; no good version of it is known: checkout answers 503 R001")


async def test_nothing_is_in_force_of_a_second_file_for_a_service(site: Site) -> None:
    site.write("routes/z.yaml", EVEN)
    with capture_logs() as lines:
        async with site.running() as here:
            (problem,) = here.plane.status().problems
    assert (problem.code, problem.in_force, problem.outcome) == ("R021", "nothing", None)
    (told,) = [line["event"] for line in lines if line["log_level"] == "error"]
    assert told.endswith("; no good version of it is known: nothing of it is in force")


async def test_what_is_in_force_of_a_file_in_error_is_told_with_its_time(site: Site) -> None:
    async with site.running() as here:
        began = at(time.time())
        site.write("routes/checkout.yaml", EVEN)
        await until(lambda: here.weights() == EVENLY)
        site.write("routes/checkout.yaml", BROKEN)
        (problem,) = await until(lambda: here.plane.status().problems)
        assert problem.in_force == "last good"
        assert problem.in_force_since is not None
        assert began <= problem.in_force_since <= at(time.time())


async def test_warnings_about_discovery_reach_the_log_once_and_the_metric(site: Site) -> None:
    site.write("routes/checkout.yaml", ROUTES.replace("version: v2", "version: v3"))
    with capture_logs() as lines:
        async with site.running() as here:
            assert here.metric("swashplate_warnings 1.0")
            site.write("services.yaml", SERVICES.replace("10.0.1.1", "10.0.1.2"))
            await until(lambda: "10.0.1.2" in str(here.config()))
            here.plane.status()
            site.write("services.yaml", SERVICES.replace("version: v2", "version: v3"))
            await until(lambda: here.metric("swashplate_warnings 0.0"))
    told = [line["event"] for line in lines if line["log_level"] == "warning"]
    assert len(told) == 1
    assert "R030 no endpoint of `checkout.default` has the labels of `canary`" in told[0]


async def test_what_could_not_be_granted_reaches_the_log(site: Site) -> None:
    site.write("services.yaml", SERVICES + "- {name: dns, port: 53, protocol: udp, endpoints: ['10.0.2.1:53']}\n")
    with capture_logs() as lines:
        async with site.running():
            pass
    told = [(line["event"].partition(": ")[0], line["code"]) for line in lines if line["log_level"] == "warning"]
    assert told == [("not all could be granted", "udp-port")]


@pytest.mark.parametrize(
    ("edit", "code", "heal"),
    [
        (("version: v1", "version: v11"), "R030", ("version: v1}", "version: v11}")),
        (("service: checkout", "service: chekcout"), "R031", ("name: checkout", "name: chekcout")),
    ],
)
async def test_a_misspelt_edit_changes_nothing_and_waits(
    site: Site, edit: tuple[str, str], code: str, heal: tuple[str, str]
) -> None:
    async with site.running() as here:
        before = here.config()
        site.write("routes/checkout.yaml", EVEN.replace(*edit))
        await until(lambda: [problem.code for problem in here.plane.status().problems] == [code])
        assert here.config() == before
        site.write("services.yaml", SERVICES.replace(*heal))
        await until(lambda: here.config() != before and here.plane.status().in_force)


async def test_routes_to_what_nobody_discovered_are_a_warning(site: Site) -> None:
    site.write("routes/checkout.yaml", ROUTES.replace("version: v2", "version: v3"))
    async with site.running() as here:
        warnings = [problem for problem in here.plane.status().problems if "canary" in problem.message]
        assert [problem.severity for problem in warnings] == ["warning"]
        assert here.plane.status().in_force
        site.write("services.yaml", SERVICES.replace("version: v2", "version: v3"))
        await until(lambda: not here.plane.status().problems)


class TestReadiness:
    async def test_waits_for_every_source(self, tmp_path: Path) -> None:
        site = Site(tmp_path)
        async with site.running(ready=False) as here:
            reason = await until(lambda: [text for text in here.plane.unready() if "cannot be read" in text])
            assert "service-files" in reason[0]
            assert "No such file" in reason[0]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                async with here.client() as client:
                    await client.receive()
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "service-files" in (refused.value.details() or "")
            site.write("services.yaml", SERVICES)
            await until(lambda: not here.plane.unready())
            assert here.clusters() >= {"checkout", "web"}, "ready means that the first answer is whole"

    async def test_without_debounce_too_ready_means_whole(self, site: Site) -> None:
        """Every change goes out at once then, the first source's before the second was read."""
        site.settings |= {"debounce_quiet": "0", "debounce_limit": "0"}
        async with site.running() as here:
            assert here.weights() == NEW

    async def test_an_empty_directory_has_answered(self, tmp_path: Path) -> None:
        site = Site(tmp_path)
        site.settings["services"] = tmp_path / "routes"
        async with site.running() as here:
            assert here.plane.status().servers[0].ready

    async def test_waits_while_no_service_file_is_good(self, site: Site) -> None:
        """Proxies that come back to a server with nothing would lose everything."""
        site.write("services.yaml", "services: [")
        async with site.running(ready=False) as here:
            reason = await until(lambda: [text for text in here.plane.unready() if "no service file is good" in text])
            assert "service-files" in reason[0]
            report = here.plane.status()
            assert [problem.code for problem in report.problems] == ["F004"]
            assert (report.sources[0].state, report.sources[0].error) == ("stale", "no service file is good")
            site.write("services.yaml", SERVICES)
            await until(lambda: not here.plane.unready())
            assert here.plane.status().sources[0].state == "fresh"
            site.write("services.yaml", "services: [")
            await until(lambda: here.plane.status().problems)
            assert here.plane.unready() == ()
            assert here.clusters() >= {"checkout", "web"}

    async def test_stays_ready_when_a_source_goes_away(self, site: Site) -> None:
        async with site.running() as here:
            (site.root / "routes").rename(site.root / "gone")
            await until(lambda: here.plane.status().sources[1].error)
            assert here.plane.status().sources[1].state == "stale"
            assert here.plane.unready() == ()
            assert here.weights() == NEW

    async def test_not_ready_while_shutting_down(self, site: Site) -> None:
        async with site.running() as here:
            pass
        assert here.plane.unready() == ("shutting down",)


class TestStreams:
    async def test_status_of_a_proxy(self, site: Site) -> None:
        async with site.running() as here, here.client() as client:
            await client.send(types.CLUSTER)
            answer = await client.receive()
            assert {resource.name for resource in answer.resources} >= {"checkout", "web"}
            (proxy,) = here.plane.status().proxies
            assert (proxy.node, proxy.cluster, proxy.variant, proxy.server) == ("web-1", "web", "delta", "here")
            assert [(part.type, part.state) for part in proxy.types] == [("CDS", "stale")]
            await client.send(types.CLUSTER, response_nonce=answer.nonce)
            await until(lambda: here.plane.status().proxies[0].types[0].state == "synced")
            assert here.plane.status().in_force
            assert here.metric('swashplate_acks_total{type="CDS"} 1.0')
        assert here.metric('swashplate_streams_total{variant="delta"} 1.0')

    async def test_a_refusal_shows_with_the_proxys_words(self, site: Site) -> None:
        with capture_logs() as lines:
            async with site.running() as here, here.client() as client:
                await client.send(types.CLUSTER)
                answer = await client.receive()
                error = {"code": 13, "message": "no such filter"}
                await client.send(types.CLUSTER, response_nonce=answer.nonce, error_detail=error)
                await until(lambda: here.plane.status().proxies[0].types[0].state == "nacked")
                nack = here.plane.status().proxies[0].types[0].nack
                assert nack is not None
                assert nack.message == "no such filter"
                assert not here.plane.status().in_force
                assert here.metric('swashplate_nacks_total{type="CDS"} 1.0')
        assert [line["reason"] for line in lines if line["log_level"] == "warning"] == ["no such filter"]

    async def test_a_change_is_pushed(self, site: Site) -> None:
        async with site.running() as here, here.client() as client:
            await client.send(types.ENDPOINT, resource_names_subscribe=["web"])
            await client.receive()
            site.write("services.yaml", SERVICES.replace("10.0.1.1", "10.0.1.2"))
            answer = await client.receive()
            assert [resource.name for resource in answer.resources] == ["web"]
            assert b"10.0.1.2" in answer.resources[0].resource.value

    async def test_config_of_a_connected_node_is_its_own(self, site: Site) -> None:
        site.settings["ingress"] = "127.0.0.1:15006"
        async with site.running() as here, here.client("a", cluster="web") as client:
            await client.send(types.LISTENER)
            await client.receive()
            connected = here.config("a")
            assert len(connected["listeners"]) == 2, "egress, and ingress for its own service"
            assert len(here.config("a stranger")["listeners"]) == 1
            assert here.config("a stranger", "web") == connected
            with pytest.raises(ValueError, match="not supported"):
                here.config("a", version="1.20")

    async def test_shutdown_sends_proxies_elsewhere(self, site: Site) -> None:
        async with site.running() as here, here.client() as client:
            await client.send(types.CLUSTER)
            await client.receive()
            await here.plane.stop()
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await client.receive()
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE


class TestRestart:
    """With a state directory, a restart serves what was last good, and what is missing is held."""

    async def _lived(self, kept: Site) -> None:
        async with kept.running() as here:
            assert here.weights() == NEW

    async def test_broken_and_empty_files_serve_as_before(self, kept: Site) -> None:
        await self._lived(kept)
        kept.write("routes/checkout.yaml", BROKEN)
        kept.write("services.yaml", "")
        async with kept.running() as here:
            await until(lambda: {problem.code for problem in here.plane.status().problems} == {"R001", "F014"})
            assert here.weights() == NEW
            assert here.clusters() >= {"checkout", "web"}
            report = here.plane.status()
            assert not report.in_force
            assert report.sources[0].held

    async def test_ready_at_once_though_a_source_is_silent(self, kept: Site) -> None:
        await self._lived(kept)
        (kept.root / "services.yaml").unlink()
        (kept.root / "routes").rename(kept.root / "elsewhere")
        plane = ControlPlane(kept.made_settings(), Metrics())
        assert plane.unready() == ()
        assert Running(plane, Metrics(), kept.made_settings().listen).weights() == NEW
        await plane.stop()

    async def test_a_held_removal_is_confirmed(self, kept: Site) -> None:
        kept.write("routes/web.yaml", "version: 1\nservice: web\nrules: [{name: main, respond: {status: 418}}]\n")
        await self._lived(kept)
        (kept.root / "routes/web.yaml").unlink()
        async with kept.running() as here:
            held = await until(lambda: here.plane.status().sources[1].held)
            assert held == (str(kept.root / "routes/web.yaml"),)
            with pytest.raises(LookupError, match="holds no removal of nobody"):
                await here.plane.confirm("route-files", "nobody")
            with pytest.raises(LookupError, match="there are: service-files, route-files"):
                await here.plane.confirm("no-such", None)
            assert await here.plane.confirm("route-files", "web") == ("web",)
            assert here.plane.status().sources[1].held == ()
            assert here.plane.status().sources[1].services == 1

    async def test_the_rollout_begins_at_what_the_process_before_served(self, kept: Site) -> None:
        await self._lived(kept)
        kept.write("routes/checkout.yaml", EVEN)
        async with kept.running() as here:
            await until(lambda: here.weights() == EVENLY)
            node = Node("n", "n")
            origin = here.plane._composition.origin_view(node)
            now = here.plane._composition.view(node)
            assert origin.version(types.CLUSTER) == now.version(types.CLUSTER)
            assert origin.version(types.ROUTE) != now.version(types.ROUTE)
            here.plane._composition.forget_origin()
            assert not here.plane._composition.origin_view(node).layers

    async def test_unchanged_files_are_the_same_versions(self, kept: Site) -> None:
        async with kept.running() as here:
            before = here.plane._composition.view(Node("n", "n"))
        async with kept.running() as here:
            after = here.plane._composition.view(Node("n", "n"))
            assert {url: after.version(url) for url in types.ORDER} == {
                url: before.version(url) for url in types.ORDER
            }

    async def test_one_process_at_a_time(self, kept: Site) -> None:
        async with kept.running():
            with pytest.raises(StoreError, match="in use by another process"):
                ControlPlane(kept.made_settings(), Metrics())


class TestHealth:
    async def test_a_failed_translation_is_sickness_and_proxies_keep_what_they_have(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with site.running() as here:
            assert here.plane.sick() == ()

            def fail(*_: object) -> bool:
                raise RuntimeError("a bug")

            monkeypatch.setattr(here.plane._composition._views, "update", fail)
            with capture_logs():
                site.write("routes/checkout.yaml", EVEN)
                (reason,) = await until(here.plane.sick)
            assert "a bug" in reason
            assert here.weights() == NEW

    async def test_a_source_that_ended_is_sickness(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        async def fail(_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr("routes.source.RouteSource.run", fail)
        with capture_logs() as lines:
            async with site.running(ready=False) as here:
                (reason,) = await until(here.plane.sick)
        assert reason.startswith("route-files ended")
        assert [line["source"] for line in lines if line["log_level"] == "error"] == ["route-files"]

    async def test_a_change_that_never_goes_out_is_sickness(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site.settings |= {"debounce_quiet": "1h", "debounce_limit": "1h"}
        async with site.running(ready=False) as here:
            await until(lambda: here.plane._composition.pending)
            assert here.plane.sick() == ()
            monkeypatch.setattr("swashplate.composition.time.monotonic", lambda: 1e9)
            assert here.plane.sick() == ("a change has been waiting too long to be sent",)


async def test_port_taken(site: Site) -> None:
    async with site.running() as here:
        site.settings["listen"] = here.listen
        second = ControlPlane(site.made_settings(), Metrics())
        with pytest.raises(AddressTakenError, match=rf"{here.listen} is taken.*--listen"):
            await second.start()
        await second.stop()
