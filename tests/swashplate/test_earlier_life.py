"""What serves from a store says so from the first moment on, and how old it is."""

from types import SimpleNamespace
from typing import Any

import pytest

from discovery.registry import SourceStatus
from operator_files.follow import Freshness
from swashplate.explain.endpoint import explain_endpoint
from swashplate.source_report import service_source_report

GOOD_AT = 1_700_000_000.0


def source(freshness: Freshness) -> Any:
    return SimpleNamespace(place="here", freshness=freshness, held_files=(), notes=("a note",))


def notes(freshness: Freshness) -> tuple[str, ...]:
    return service_source_report("s", SourceStatus("kubernetes"), source(freshness), {}, "default").notes


@pytest.mark.parametrize(("at", "said"), [(GOOD_AT, ", good at 2023-11-14 22:13:20 UTC"), (None, "")])
def test_status_says_that_it_is_of_an_earlier_life_and_when_it_was_good(at: float | None, said: str) -> None:
    found = notes(Freshness(stored=True, stored_at=at))
    assert found == (f"not heard since the start: what is in force is of an earlier life{said}", "a note")


@pytest.mark.parametrize("freshness", [Freshness(), Freshness(synced_at=5.0, stored=True, stored_at=GOOD_AT)])
def test_what_was_heard_or_has_nothing_says_nothing(freshness: Freshness) -> None:
    assert notes(freshness) == ("a note",)


def test_explain_says_that_an_earlier_life_is_served() -> None:
    sources = {"kubernetes": source(Freshness(stored=True, error="it does not answer"))}
    advice = explain_endpoint("nobody", (), (), sources, {}).advice
    assert advice[0] == (
        "kubernetes has not been heard since the start, and what an earlier life knew of it is served: "
        "it does not answer"
    )
