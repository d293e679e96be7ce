"""What serves from a store says so from the first moment on, and how old it is."""

from datetime import UTC, datetime
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from discovery.registry import Evidence, Registry, SourceStatus
from mesh.service import Service, ServiceName
from operator_files.follow import Freshness
from swashplate.explain.endpoint import explain_endpoint
from swashplate.source_report import service_source_report
from swashplate.status import StatusReport
from swashplate.status_text import show

GOOD_AT = 1_700_000_000.0
NAME = ServiceName("default", "checkout")


def source(freshness: Freshness) -> Any:
    return SimpleNamespace(place="here", freshness=freshness, held_files=(), notes=("a note",))


def notes(freshness: Freshness) -> tuple[str, ...]:
    return service_source_report("s", SourceStatus("kubernetes"), source(freshness), {}, "default").notes


@pytest.mark.parametrize(("at", "said"), [(GOOD_AT, ", good at 2023-11-14 22:13:20 UTC"), (None, "")])
def test_status_says_that_it_is_of_an_earlier_life_and_when_it_was_good(at: float | None, said: str) -> None:
    found = notes(Freshness(stored=True, stored_at=at))
    assert found == (
        "not heard since the start, and its first answer is on the way: "
        f"what is in force is of an earlier life{said}",
        "a note",
    )
    failing = notes(Freshness(stored=True, stored_at=at, error="the API server cannot be reached"))
    assert failing == (f"not heard since the start: what is in force is of an earlier life{said}", "a note")


def test_status_shows_the_age_of_what_was_saved() -> None:
    registry = Registry(["kubernetes"], lambda _: None, lambda: GOOD_AT + 3 * 3600)
    registry.feed("kubernetes").publish({NAME: Service(NAME)}, Evidence.STORED, good_at=GOOD_AT)
    registry.feed("kubernetes").failed("it does not answer")
    (status,) = registry.statuses()
    assert status.stale_since == GOOD_AT
    freshness = Freshness(None, status.stale_since, status.error, stored=True, stored_at=GOOD_AT)
    report = service_source_report("s", status, source(freshness), {}, "default")
    out = StringIO()
    whole = StatusReport(servers=(), sources=(report,), problems=(), warnings=(), proxies=())
    show(whole, datetime.fromtimestamp(GOOD_AT + 3 * 3600, UTC), out)
    assert "saved 3h0m ago" in out.getvalue()
    assert "stale for 3h0m" in out.getvalue()


def test_what_was_heard_says_nothing_and_what_was_not_is_awaited() -> None:
    heard = Freshness(synced_at=5.0, stored=True, stored_at=GOOD_AT)
    status = SourceStatus("kubernetes", synced_at=5.0)
    assert service_source_report("s", status, source(heard), {}, "default").notes == ("a note",)
    assert notes(Freshness()) == ("its first answer is on the way", "a note")


def test_explain_says_that_an_earlier_life_is_served() -> None:
    sources = {"kubernetes": source(Freshness(stored=True, error="it does not answer"))}
    advice = explain_endpoint("nobody", (), (), sources, {}).advice
    assert advice[0] == (
        "kubernetes has not been heard since the start, and what an earlier life knew of it is served: "
        "it does not answer"
    )
