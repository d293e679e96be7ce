"""Warnings about what nobody discovered are kept current file by file."""

import pytest

from mesh.service import Endpoint, Port, Service, ServiceName
from routes.book import RouteBook
from routes.checks.found import discovered_problems
from routes.discovered import Undiscovered


def name(text: str) -> ServiceName:
    return ServiceName("default", text)


def services(**versions: str) -> dict[ServiceName, Service]:
    """Services with an endpoint for each character, labelled `v`."""
    return {
        name(stem): Service(
            name(stem),
            (
                Port(
                    "http", 80, endpoints=tuple(Endpoint("10.0.0.1", 80, labels=frozenset({("v", v)})) for v in found)
                ),
            ),
        )
        for stem, found in versions.items()
    }


def file(service: str, version: str, more: str = "") -> bytes:
    text = f"version: 1\nservice: {service}\nsubsets: {{one: {{v: '{version}'}}}}\nrules: [{{to: one}}]\n{more}"
    return text.encode()


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the files that are checked, as they are."""
    paths: list[str] = []

    def noting(path: str, *arguments: object, **more: object) -> object:
        paths.append(path)
        return discovered_problems(path, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("routes.book.discovered_problems", noting)
    return paths


def test_a_change_costs_the_files_it_concerns(looked_at: list[str]) -> None:
    undiscovered = Undiscovered()
    book = RouteBook().edited({"a.yaml": file("a", "1"), "b.yaml": file("b", "2")})
    there = services(a="1", b="1", c="1")
    assert [problem.file for problem in undiscovered.update(book, there)] == ["b.yaml"]
    assert looked_at == ["a.yaml", "b.yaml"]
    before = undiscovered.problems
    assert undiscovered.update(book, dict(there)) is before
    assert undiscovered.update(book, {**there, **services(c="2")}) is before
    assert looked_at == ["a.yaml", "b.yaml"]

    assert undiscovered.update(book, {**there, **services(b="12")}) == ()
    assert looked_at == ["a.yaml", "b.yaml", "b.yaml"]
    edited = book.edited({"a.yaml": file("a", "9")})
    again = {**there, **services(b="12")}
    assert [problem.file for problem in undiscovered.update(edited, again)] == ["a.yaml"]
    assert looked_at[3:] == ["a.yaml", "b.yaml"], "an equal service that is another value may be another"
    gone = edited.edited({"a.yaml": None})
    assert undiscovered.update(gone, again) == ()


def test_what_is_said_of_an_older_version_says_so() -> None:
    there = services(a="1")
    book = RouteBook().with_services(there).edited({"a.yaml": file("a", "2")})
    (current,) = book.against(there)
    assert "version in force" not in current.message
    (older,) = book.edited({"a.yaml": b"{"}).against(there)
    assert older.message.endswith("(this is about the version in force, not the newest edit)")
