"""What registries said is kept as values: lossless, a second after a change, only what differs, damage set aside."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import looptime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.kept import KeptServices, decoded, encoded, key_of
from discovery.registry import Evidence, Feed, Registry
from mesh.service import Endpoint, Health, Locality, Port, Protocol, Service, ServiceName
from operator_files.good_at import EVERY_S
from operator_files.store import LastGoodStore, StoreError

A, B = ServiceName("default", "a"), ServiceName("dev/a", "b")
DEADLINE_S = 10.0


def service(name: ServiceName, *hosts: str) -> Service:
    return Service(name, (Port("http", 80, Protocol.GRPC, tuple(Endpoint(host, 8080) for host in hosts)),))


def feed() -> Feed:
    return Registry(["consul"], lambda _: None, lambda: 1000.0).feed("consul")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LastGoodStore]:
    with LastGoodStore(tmp_path) as opened:
        yield opened


class Saves:
    """A store that counts what is written to it."""

    def __init__(self, store: LastGoodStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[list[str]] = []
        save = store.save

        def counted(kind: str, changes: dict[str, str | None]) -> None:
            self.keys.append(sorted(changes))
            save(kind, changes)

        monkeypatch.setattr(store, "save", counted)


async def until(holds: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + DEADLINE_S
    while not holds():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.002)


_text = st.text(max_size=4)
_endpoints = st.builds(
    Endpoint,
    _text,
    st.integers(1, 65535),
    st.integers(1, 2**32 - 1),
    st.sampled_from(Health),
    st.builds(Locality, _text, _text, _text),
    st.frozensets(st.tuples(_text, _text), max_size=3),
    _text,
    st.lists(_text, max_size=2).map(tuple),
    _text,
)
_ports = st.builds(
    Port, _text, st.integers(0, 65535), st.sampled_from(Protocol), st.lists(_endpoints, max_size=2).map(tuple)
)
_services = st.builds(
    Service,
    st.builds(ServiceName, _text, _text),
    st.lists(_ports, max_size=2).map(tuple),
    st.lists(_text, max_size=2).map(tuple),
)


@given(_services)
def test_a_service_comes_back_as_it_was(kept: Service) -> None:
    assert decoded(encoded(kept)) == kept
    assert repr(sorted_labels(decoded(encoded(kept)))) == repr(sorted_labels(kept)), "types too"
    assert encoded(decoded(encoded(kept))) == encoded(kept)


def sorted_labels(kept: Service) -> list[object]:
    return [
        (kept.name, port.name, port.number, port.protocol, sorted(one.labels), one.locality, one.health, one.address)
        for port in kept.ports
        for one in port.endpoints
    ]


@given(st.lists(st.builds(ServiceName, _text, _text), unique=True))
def test_every_name_has_a_key_of_its_own(names: list[ServiceName]) -> None:
    assert len({key_of(name) for name in names}) == len(names)


async def test_another_life_loads_what_was_in_force(store: LastGoodStore) -> None:
    kept, said = KeptServices(store, "consul"), feed()
    assert kept.load() == {}
    said.publish({A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}, Evidence.LIVE)
    await kept.keep(said)
    said.publish({B: None}, Evidence.FIRST)
    assert said.held, "what is held is still in force"
    await kept.keep(said)
    assert KeptServices(store, "consul").load() == {A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}
    assert KeptServices(store, "kubernetes").load() == {}
    said.confirm()
    await kept.keep(said)
    assert KeptServices(store, "consul").load() == {A: service(A, "10.0.0.1")}


async def test_only_what_differs_is_written_after_the_delay(
    store: LastGoodStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, said, saves = KeptServices(store, "consul", delay_s=0.01), feed(), Saves(store, monkeypatch)
    task = asyncio.create_task(kept.run(said))
    try:
        said.publish({A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}, Evidence.LIVE)
        kept.changed([A, B])
        await until(lambda: len(saves.keys) == 1)
        said.publish({A: service(A, "10.0.0.9")}, Evidence.LIVE)
        kept.changed([A])
        kept.changed([B])
        await until(lambda: len(saves.keys) == 2)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert saves.keys == [sorted(map(key_of, (A, B))), [key_of(A)]]
    assert KeptServices(store, "consul").load()[A] == service(A, "10.0.0.9")


async def test_a_write_that_is_under_way_when_the_server_stops_is_finished(
    store: LastGoodStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, said = KeptServices(store, "consul", delay_s=0), feed()
    began, save = asyncio.Event(), store.save
    loop = asyncio.get_running_loop()

    def slow(kind: str, changes: dict[str, str | None]) -> None:
        loop.call_soon_threadsafe(began.set)
        save(kind, changes)

    monkeypatch.setattr(store, "save", slow)
    said.publish({A: service(A, "10.0.0.1")}, Evidence.LIVE)
    kept.changed([A])
    task = asyncio.create_task(kept.run(said))
    await asyncio.wait_for(began.wait(), DEADLINE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert KeptServices(store, "consul").load() == {A: service(A, "10.0.0.1")}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be read"),
        ("null", "cannot be read"),
        ('{"format": 1, "service": {"name": ["default"]}}', "cannot be read"),
        (json.dumps({"format": 2, "service": {"name": ["default", "a"]}}), "has format 2"),
    ],
)
async def test_an_entry_that_cannot_be_read_costs_itself_only(store: LastGoodStore, text: str, reason: str) -> None:
    store.save("consul", {key_of(A): text, key_of(B): encoded(service(B, "10.0.0.2"))})
    kept, said = KeptServices(store, "consul"), feed()
    said.publish(kept.load(), Evidence.STORED)
    assert set(said.services) == {B}
    (warning,) = kept.warnings
    assert key_of(A) in warning
    assert reason in warning
    await kept.keep(said)
    assert set(store.load("consul")) == {key_of(B)}, "and is gone with the next write"


async def test_a_store_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    store, said = LastGoodStore(tmp_path), feed()
    kept = KeptServices(store, "consul", delay_s=0)
    store.close()
    task = asyncio.create_task(kept.run(said))
    said.publish({A: service(A, "10.0.0.1")}, Evidence.LIVE)
    kept.changed([A])
    await until(lambda: bool(kept.store_error))
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await kept.keep(said)


async def test_what_could_not_be_written_is_tried_again_with_the_next_change(
    store: LastGoodStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_kind: str, _changes: dict[str, str | None]) -> None:
        raise StoreError("disk full")

    kept, said = KeptServices(store, "consul", delay_s=0), feed()
    said.publish({A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}, Evidence.LIVE)
    with monkeypatch.context() as broken:
        broken.setattr(store, "save", full)
        kept.changed([A])
        task = asyncio.create_task(kept.run(said))
        await until(lambda: bool(kept.store_error))
    kept.changed([B])
    await until(lambda: not kept.store_error)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert set(KeptServices(store, "consul").load()) == {A, B}


async def test_without_a_store_nothing_is_kept() -> None:
    kept, said = KeptServices(None, "consul"), feed()
    said.publish({A: service(A, "10.0.0.1")}, Evidence.LIVE)
    assert kept.load() == {}
    await kept.keep(said)
    assert kept.store_error == ""


def test_while_nothing_changes_the_time_is_written_every_minute(store: LastGoodStore) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        registry = Registry(["consul"], lambda _: None, loop.time)
        kept, heard = KeptServices(store, "consul", now=loop.time), registry.feed("consul")
        heard.publish({A: service(A, "10.0.0.1")}, Evidence.FIRST)
        heard.synced()
        kept.changed([A])
        task = asyncio.create_task(kept.run(heard))
        for minutes in (5, 60):
            await asyncio.sleep(minutes * 60)
            written = KeptServices(store, "consul").good_at
            assert written is not None
            assert loop.time() - written <= EVERY_S + 2
        heard.failed("it does not answer")
        lost = loop.time()
        await asyncio.sleep(600)
        assert KeptServices(store, "consul").good_at == lost
        task.cancel()

    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop()) as runner:
        runner.run(scenario())
