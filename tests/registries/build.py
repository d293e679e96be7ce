"""Builds the registries that tests run against, each once for its sources, into a folder outside the checkout.

`python tests/registries/build.py` builds what is missing; it needs Go. Nothing else here does.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
SOURCES: Final = ("go.mod", "go.sum", "*.go")
KUBERNETES: Final = "v1.37.2"

_VERSION: Final = "k8s.io/component-base/version"
_VERSION_FLAGS: Final = " ".join(
    f"-X {_VERSION}.{name}={value}"
    for name, value in {
        "gitVersion": KUBERNETES,
        "gitMajor": KUBERNETES[1:].split(".")[0],
        "gitMinor": KUBERNETES.split(".")[1],
        "gitTreeState": "clean",
        "gitCommit": "unknown",
    }.items()
)


class BuildError(Exception):
    """What went wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class Program:
    """A Go module below this folder. `takes` says how long a build takes where Go has nothing of it yet."""

    name: str
    module: str
    takes: str
    ldflags: str = ""

    @property
    def path(self) -> Path:
        """Where the program is, or will be, for the sources as they are now."""
        digest = hashlib.sha256(f"{self.ldflags}\n".encode())
        folder = HERE / self.module
        for file in sorted(path for pattern in SOURCES for path in folder.glob(pattern)):
            digest.update(f"{file.name}\n".encode() + file.read_bytes())
        return cache() / digest.hexdigest()[:16] / self.name


APISERVER: Final = Program("kubeapiserver", "kubernetes/apiserver", "5 minutes", _VERSION_FLAGS)
CONTROLLERS: Final = Program("kubecontrollers", "kubernetes/controllers", "3 minutes", _VERSION_FLAGS)
CONSUL: Final = Program("consulagent", "consul/agent", "4 minutes")
PROGRAMS: Final = (APISERVER, CONTROLLERS, CONSUL)


def cache() -> Path:
    """The folder of all builds."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swashplate" / "test-registries"


def missing(*programs: Program) -> str:
    """Why tests that need these cannot run; empty where they can."""
    absent = [program.name for program in programs if not program.path.exists()]
    return f"{', '.join(absent)} not built: run `make test-registries` (it needs Go)" if absent else ""


def find_go() -> str | None:
    """Go's command, where its installer puts it too."""
    return shutil.which("go") or shutil.which("/usr/local/go/bin/go")


def build(program: Program) -> None:
    """Builds it unless it is there. Two that build at the same time do it once. Raises BuildError."""
    if program.path.exists():
        return
    go = find_go()
    if go is None:
        raise BuildError(f"Go is needed to build {program.name}: https://go.dev/dl, or your distribution's `golang`.")
    with _alone(program):
        if program.path.exists():
            return
        _say(f"Building {program.name}: about {program.takes} where Go has built nothing of it before, else seconds.")
        begun = time.monotonic()
        beside = program.path.with_suffix(f".{os.getpid()}")
        command = [go, "build", "-trimpath", "-ldflags", f"-s -w {program.ldflags}", "-o", str(beside), "."]
        try:
            done = subprocess.run(command, cwd=HERE / program.module, env=_environment(os.environ), check=False)
            if done.returncode:
                raise BuildError(
                    f"{program.name} was not built: `go build` in {HERE / program.module} failed, see above."
                )
            beside.replace(program.path)
        finally:
            beside.unlink(missing_ok=True)
        _say(f"Built {program.path} in {time.monotonic() - begun:.0f} s.")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    return {**given, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly"}


@contextlib.contextmanager
def _alone(program: Program) -> Iterator[None]:
    """Keeps other builds of the same program waiting. The kernel lets go of the lock of a process that dies."""
    program.path.parent.mkdir(parents=True, exist_ok=True)
    with (program.path.parent / f"{program.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"Waiting for another build of {program.name}.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """0 where all is built, 1 where something could not be."""
    names = [program.name for program in PROGRAMS]
    parser = argparse.ArgumentParser(description="Build the registries that tests run against.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to build: {', '.join(names)} (default: all)")
    asked = parser.parse_args().names
    if unknown := set(asked) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    try:
        for program in PROGRAMS:
            if not asked or program.name in asked:
                build(program)
    except BuildError as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
