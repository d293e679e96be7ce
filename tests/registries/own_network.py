"""Tests in a network namespace of their own, where 192.0.2.0/24 is this machine: addresses for pods.

Kubernetes refuses loopback addresses in endpoint slices, and on somebody's machine no others are ours to take. Tests
marked `own_network` run in one pytest inside of the namespace, with all that they start: servers, Envoys, upstreams,
load. What it reports is reported here, test by test. Needs unshare(1), and no rights where users may make namespaces.
"""

import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import IO, Any, Final

import pytest

from tests.registries.build import APISERVER, CONTROLLERS, missing

POD_NETWORK: Final = IPv4Network("192.0.2.0/24")
"""For documentation (RFC 5737): nobody's network outside of the namespace."""

ROOT: Final = Path(__file__).parents[2]
REPORTS: Final = "SWASHPLATE_TEST_REPORTS"
"""Environment variable of the pytest inside: the descriptor that its reports go to."""

_PDEATHSIG, _IFF_UP = 1, 1
_SIOCSIFADDR, _SIOCSIFFLAGS, _SIOCSIFNETMASK = 0x8916, 0x8914, 0x891C  # netdevice(7)


def pod_addresses() -> Iterator[str]:
    """Addresses to give to pods, in a namespace of one's own."""
    return map(str, POD_NETWORK.hosts())


@cache
def _unshare() -> tuple[str, ...]:
    """The command that makes the namespace; empty where nothing does."""
    found = shutil.which("unshare")
    ways = [(found, "--net"), (found, "--net", "--map-root-user")] if found else []
    for way in ways:
        if subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0:
            return tuple(str(part) for part in way)
    return ()


class _Inside:
    """The pytest inside of the namespace. `report` gives what it says of one test, once it has said it."""

    def __init__(self, tests: list[str], directory: Path, options: list[str]) -> None:
        self._output = directory / "own-network.out"
        self._reports: dict[str, list[dict[str, Any]]] = {}
        read, write = os.pipe()
        self._pipe: IO[str] = os.fdopen(read)
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        command = [*_unshare(), sys.executable, "-m", __name__, "-n0", "-p", "no:cacheprovider", *options, *tests]
        with self._output.open("wb") as sink:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                pass_fds=[write], env={**env, REPORTS: str(write)},
            )  # fmt: skip
        os.close(write)

    def reports(self, test: str) -> list[dict[str, Any]]:
        """All phases of a test. Raises RuntimeError where it has ended without."""
        while not any(report["when"] == "teardown" for report in self._reports.get(test, ())):
            line = self._pipe.readline()
            if not line:
                raise RuntimeError(f"pytest in a network of its own ended:\n{self._output.read_text()[-4000:]}")
            said = json.loads(line)
            self._reports.setdefault(said["nodeid"], []).append(said)
        return self._reports.pop(test)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._pipe.close()


class _Outside:
    """Hands the marked tests over to the pytest inside."""

    def __init__(self) -> None:
        self._inside: _Inside | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if item.get_closest_marker("own_network") is None:
            return None
        if reason := _obstacle(item):
            item.add_marker(pytest.mark.skip(reason=reason))
            return None
        if self._inside is None:
            marked = [other for other in item.session.items if other.get_closest_marker("own_network")]
            directory = item.config._tmp_path_factory.mktemp("network")  # type: ignore[attr-defined]
            level = item.config.getoption("log_level")
            options = [f"--log-level={level}"] if level else []
            self._inside = _Inside([_plain(other.nodeid) for other in marked], directory, options)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in _told(self._inside, item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        # The test before left standing what it shares with this one, such as their module.
        item.session._setupstate.teardown_exact(nextitem)
        return True

    def pytest_unconfigure(self) -> None:
        if self._inside is not None:
            self._inside.stop()


def _told(inside: _Inside, item: pytest.Item) -> Iterator[pytest.TestReport]:
    try:
        said = inside.reports(_plain(item.nodeid))
    except RuntimeError as error:
        yield pytest.TestReport(item.nodeid, item.location, {}, "failed", str(error), "call")
        return
    for data in said:
        report = item.config.hook.pytest_report_from_serializable(config=item.config, data=data)
        report.nodeid = item.nodeid
        if isinstance(report.longrepr, list):  # why it was skipped: JSON has no tuples
            report.longrepr = tuple(report.longrepr)
        yield report


def _plain(nodeid: str) -> str:
    """The test's id without the group that xdist adds to it."""
    return nodeid.partition("@")[0]


def _obstacle(item: pytest.Item) -> str:
    if "kube" in getattr(item, "fixturenames", ()) and (reason := missing(APISERVER, CONTROLLERS)):
        return reason
    return "" if _unshare() else "no network namespace can be made here: unshare(1) is missing, or may not"


class _Reporter:
    """What the pytest inside says to the one outside."""

    def __init__(self, config: pytest.Config, pipe: IO[str]) -> None:
        self._config = config
        self._pipe = pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._pipe.write(json.dumps(data) + "\n")
        self._pipe.flush()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "own_network: runs in a network namespace of its own; see own_network.py")
    if descriptor := os.environ.pop(REPORTS, ""):
        config.pluginmanager.register(_Reporter(config, os.fdopen(int(descriptor), "w")))
    else:
        config.pluginmanager.register(_Outside())


def _up() -> None:
    """Makes the pods' network the loopback interface's, in the namespace that this process is in."""
    netmask, first = POD_NETWORK.netmask, next(POD_NETWORK.hosts())

    def address(interface: str, value: IPv4Address) -> bytes:
        return struct.pack("16sHH4s8x", interface.encode(), socket.AF_INET, 0, value.packed)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
        fcntl.ioctl(control, _SIOCSIFADDR, address("lo:pods", first))
        # All of a network on the loopback interface is local, not its one address alone.
        fcntl.ioctl(control, _SIOCSIFNETMASK, address("lo:pods", netmask))


if __name__ == "__main__":
    _up()
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
