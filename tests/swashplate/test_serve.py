"""`swashplate serve` as a process: how it begins, what it says when it cannot, how it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from swashplate.cli import main
from tests.swashplate.site import BROKEN, EVEN, Site

DEADLINE_S = 30.0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write_all()
    return site


class Process:
    """A server whose log lines are read as they come."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    def line(self, event: str) -> dict[str, Any]:
        """The next log line of this event, up to a colon."""
        assert self.process.stderr is not None
        for text in self.process.stderr:
            self.lines.append(json.loads(text))
            if self.lines[-1]["event"].partition(": ")[0] == event:
                return self.lines[-1]
        raise AssertionError(f"ended without saying {event!r}: {self.lines}")

    def ended(self) -> int:
        return self.process.wait(DEADLINE_S)


def command(site: Site, *arguments: str) -> list[str]:
    return [
        *(sys.executable, "-m", "swashplate", "serve"),
        *("--services", str(site.root / "services.yaml"), "--routes", str(site.root / "routes")),
        *(part for flag in ("--listen", "--admin") if flag not in arguments for part in (flag, "127.0.0.1:0")),
        *arguments,
    ]


@contextmanager
def serving(site: Site, *arguments: str) -> Iterator[Process]:
    with subprocess.Popen(
        command(site, *arguments), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        # A line that never comes is waited for until then.
        watchdog = threading.Timer(DEADLINE_S, process.kill)
        watchdog.start()
        try:
            yield Process(process)
        finally:
            watchdog.cancel()
            process.kill()


def test_serves_from_start_to_signal(site: Site) -> None:
    with serving(site) as server:
        admin = server.line("serving")["admin"]
        server.line("ready")
        with urlopen(f"http://{admin}/readyz", timeout=DEADLINE_S) as answer:
            assert answer.read() == b"ok\n"
        site.write("routes/checkout.yaml", BROKEN)
        refused = server.line("file has an error")
        assert (refused["level"], refused["code"], refused["line"]) == ("error", "R001", 6)
        assert refused["event"].endswith(
            "checkout.yaml:6:7 R001 the shares sum to 105%, not 100% (fix: take 5% off); "
            "its last good version stays in force"
        )
        status = CliRunner().invoke(main, ["status", "--server", admin])
        assert status.exit_code == 1
        assert "checkout.yaml:6:7: error R001" in status.stdout
        site.write("routes/checkout.yaml", EVEN)
        assert server.line("published")["services"] == ["checkout"]
        assert CliRunner().invoke(main, ["status", "--server", admin]).exit_code == 0
        server.process.send_signal(signal.SIGHUP)
        server.line("SIGHUP does nothing")
        server.process.send_signal(signal.SIGTERM)
        server.line("shutting down")
        assert server.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_while_it_is_still_waiting_for_its_files(site: Site, number: signal.Signals) -> None:
    (site.root / "services.yaml").unlink()
    with serving(site) as server:
        refused = server.line("no answer from a source")
        assert "services.yaml cannot be read: No such file" in refused["event"]
        assert refused["event"].endswith("; nothing of it is known yet")
        server.process.send_signal(number)
        assert server.ended() == 0


@pytest.mark.parametrize(("flag", "use"), [("--listen", "the ADS server"), ("--admin", "the admin server")])
def test_a_taken_port_is_named_with_its_flag(site: Site, flag: str, use: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            command(site, flag, f"127.0.0.1:{port}"), capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    assert done.returncode == 2
    message = f"Error: 127.0.0.1:{port} is taken: {use} cannot listen there. Choose another address with {flag}."
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("no-such-host.invalid:18000", "cannot be had ("),
        ("192.0.2.1:18000", "cannot be had (Cannot assign requested"),
    ],
)
@pytest.mark.parametrize(("flag", "use"), [("--listen", "the ADS server"), ("--admin", "the admin server")])
def test_an_address_that_cannot_be_had_is_named_with_its_flag(
    site: Site, flag: str, use: str, place: str, why: str
) -> None:
    done = subprocess.run(command(site, flag, place), capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    assert f"Error: {place} {why}" in done.stderr
    assert f"): {use} cannot listen there. Choose another address with {flag}." in done.stderr


def test_a_state_directory_is_for_one_process(site: Site, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with serving(site, "--state", state) as server:
        server.line("ready")
        done = subprocess.run(
            command(site, "--state", state), capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    assert done.returncode == 2
    assert re.search(r"Error: state directory .* is in use by another process", done.stderr)


def test_started_again_it_serves_what_was_last_good(site: Site, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with serving(site, "--state", state) as server:
        server.line("published")
        site.write("routes/checkout.yaml", EVEN)
        server.line("published")
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0
    (site.root / "services.yaml").unlink()
    site.write("routes/checkout.yaml", BROKEN)
    with serving(site, "--state", state) as server:
        admin = server.line("serving")["admin"]
        with urlopen(f"http://{admin}/config?node=n", timeout=DEADLINE_S) as answer:
            config = json.loads(answer.read())
    split = next(
        route["route"]["weighted_clusters"]["clusters"]
        for host in config["routes"][0]["virtual_hosts"]
        for route in host["routes"]
        if "weighted_clusters" in route["route"]
    )
    assert [part["weight"] for part in split] == [5000, 5000]


def test_two_servers_at_one_address_are_wrong_usage(site: Site) -> None:
    same = "127.0.0.1:18555"
    result = CliRunner().invoke(main, ["serve", "--services", "x", "--listen", same, "--admin", same])
    assert result.exit_code == 2
    assert f"--listen and --admin are both {same}; they must differ" in result.stderr


def test_nothing_to_serve_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["serve"])
    assert result.exit_code == 2
    assert "give --services, --kubernetes, --consul, --routes or --resources" in result.stderr


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name in ("serve", "check", "render", "bootstrap", "status", "confirm"):
        assert f"  {name} " in result.stdout
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_an_unknown_command_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["sevre"]).exit_code == 2


def test_a_held_removal_is_confirmed_from_the_command_line(site: Site, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    with serving(site, "--state", state) as server:
        server.line("ready")
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0
    (site.root / "routes" / "checkout.yaml").unlink()
    with serving(site, "--state", state) as server:
        admin = server.line("serving")["admin"]
        server.line("file has a warning")
        held = CliRunner().invoke(main, ["status", "--server", admin])
        assert held.exit_code == 1
        assert "removal held until confirmed" in held.stdout
        nobody = CliRunner().invoke(main, ["confirm", "route-files", "--only", "nobody", "--server", admin])
        assert nobody.exit_code == 2
        assert "holds no removal of nobody" in nobody.stderr
        done = CliRunner().invoke(main, ["confirm", "route-files", "--server", admin])
        assert done.exit_code == 0
        assert done.stdout == f"{admin}: removed the routes of checkout\n"
        again = CliRunner().invoke(main, ["confirm", "route-files", "--server", admin])
        assert again.stdout == f"{admin}: nothing is held\n"
        unknown = CliRunner().invoke(main, ["confirm", "no-such", "--server", admin])
        assert unknown.exit_code == 2
        assert "no source is called 'no-such'" in unknown.stderr


def test_settings_come_from_the_environment_too(site: Site) -> None:
    environment = {**os.environ, "SWASHPLATE_LISTEN": "nowhere"}
    done = subprocess.run(
        [sys.executable, "-m", "swashplate", "serve", "--services", "x"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env=environment,
    )
    assert done.returncode == 2
    assert "SWASHPLATE_LISTEN: 'nowhere' is not host:port" in done.stderr
    assert done.stderr.count("nowhere") == 1
