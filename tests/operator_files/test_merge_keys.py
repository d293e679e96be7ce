"""Merge keys, for files that programs with YAML 1.1 read too."""

import pytest

from operator_files.problem import Problem
from operator_files.yaml import Document, parse


def read(text: str) -> Document:
    document = parse(text, "f.yaml", merge_keys=True)
    assert isinstance(document, Document), document
    return document


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\n", {"a": 1, "b": 3}),
        ("x: &x {a: 1, b: 2}\ny: {b: 3, <<: *x}\n", {"a": 1, "b": 3}),
        ("x: &x {a: 1}\ny: {<<: [{a: 2, c: 4}, *x]}\n", {"a": 2, "c": 4}),
        ("x: &x {a: 1}\nz: &z {<<: *x, b: 2}\ny: {<<: *z}\n", {"a": 1, "b": 2}),
        ("y: {'<<': 1}\n", {"<<": 1}),
    ],
)
def test_own_keys_are_stronger_than_merged_ones(text: str, data: object) -> None:
    found = read(text).data
    assert isinstance(found, dict)
    assert found["y"] == data


def test_places_are_where_the_value_was_written() -> None:
    document = read("x: &x {a: 1}\ny: {<<: [{b: 2}, *x], c: 3}\n")
    assert document.written(("y", "a")) == "1"
    assert document.at(("y", "a"))[:2] == (1, 11)
    assert document.at(("y", "c"))[:2] == (2, 26)


@pytest.mark.parametrize("text", ["y: {<<: 1}\n", "y: {<<: [1]}\n", "x: &x [1]\ny: {<<: [*x]}\n", "x: &x {<<: *x}\n"])
def test_only_mappings_are_merged(text: str) -> None:
    problem = parse(text, "f.yaml", merge_keys=True)
    assert isinstance(problem, Problem)
    assert problem.line


def test_they_are_refused_where_nobody_asked_for_them() -> None:
    assert isinstance(parse("x: &x {a: 1}\ny: {<<: *x}\n", "f.yaml"), Problem)
