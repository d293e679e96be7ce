"""A gRPC client in a process of its own (a process has one bootstrap): commands on stdin, answers on stdout, as JSON.

    {"do": "call", "target": "checkout", "times": 100, "metadata": {}, "path": "/test.Echo/Say", "timeout": 5,
     "at_once": 1}
    {"do": "start", "target": "checkout"}     calls without a pause, until
    {"do": "stop"}                            which tells of them all, and
    {"do": "so far"}                          which tells of those since it was last asked

An answer is {"answers": {name: count}, "errors": {"STATUS: details": count}, "seconds": of the longest call}.
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import grpc

PATH = "/test.Echo/Say"


class Tally:
    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.longest = 0.0

    def call(self, channel: grpc.Channel, path: str, timeout: float, metadata: Mapping[str, str]) -> None:
        began = time.monotonic()
        say: Any = channel.unary_unary(path)
        try:
            self.answers[say(b"", timeout=timeout, metadata=tuple(metadata.items())).decode()] += 1
        except grpc.RpcError as error:
            failed: Any = error
            self.errors[f"{failed.code().name}: {failed.details()}"] += 1
        self.longest = max(self.longest, time.monotonic() - began)

    def told(self) -> dict[str, Any]:
        return {"answers": dict(self.answers), "errors": dict(self.errors), "seconds": self.longest}


class Load:
    """Calls one after another in a thread."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._all, self._recent = Tally(), Tally()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            one = Tally()
            one.call(self._channel, PATH, 10.0, {})
            with self._lock:
                for tally in (self._all, self._recent):
                    tally.answers += one.answers
                    tally.errors += one.errors
                    tally.longest = max(tally.longest, one.longest)

    def so_far(self) -> dict[str, Any]:
        with self._lock:
            recent, self._recent = self._recent, Tally()
        return recent.told()

    def stop(self) -> dict[str, Any]:
        self._ending.set()
        self._thread.join()
        return self._all.told()


def call(
    channel: grpc.Channel,
    times: int = 1,
    at_once: int = 1,
    path: str = PATH,
    timeout: float = 10.0,
    metadata: Mapping[str, str] = MappingProxyType({}),
    **_: object,
) -> Tally:
    tally = Tally()

    def one_after_another() -> None:
        for _ in range(times):
            tally.call(channel, path, timeout, metadata)

    threads = [threading.Thread(target=one_after_another) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def main() -> None:
    channels: dict[str, grpc.Channel] = {}
    load: Load | None = None
    for line in sys.stdin:
        command = json.loads(line)
        if "target" in command and command["target"] not in channels:
            channels[command["target"]] = grpc.insecure_channel(f"xds:///{command['target']}")
        match command["do"]:
            case "call":
                answer = call(channels[command["target"]], **command).told()
            case "start":
                load = Load(channels[command["target"]])
                answer = {}
            case "so far":
                assert load is not None
                answer = load.so_far()
            case "stop":
                assert load is not None
                answer = load.stop()
            case other:
                raise ValueError(other)
        print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
