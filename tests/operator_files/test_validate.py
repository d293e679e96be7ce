"""A model's errors become problems at their place, in plain words, all at once."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Discriminator, Field, Tag

from operator_files.schema import json_schema
from operator_files.validate import FileModel, did_you_mean, examine, nearest, validate
from operator_files.values import Duration, Percent, Text
from operator_files.yaml import Document, parse


class Wheel(FileModel):
    reserved = {"rim": "comes in a later version"}  # noqa: RUF012 - a ClassVar in the base

    size: int = Field(ge=1, le=30)
    kind: Literal["front", "rear"] = "front"
    every: Duration | None = None


class Car(FileModel):
    name: Text
    wheels: list[Wheel] = Field(default=[], max_length=4)
    parts: (
        Annotated[
            Annotated[str, Tag("<name>")] | Annotated[dict[str, Percent], Tag("<shares>")],
            Discriminator(lambda value: "<shares>" if isinstance(value, dict) else "<name>"),
        ]
        | None
    ) = None
    merge: dict[str, Any] | None = None


def document(text: str) -> Document:
    found = parse(text, "car.yaml")
    assert isinstance(found, Document)
    return found


def said(text: str) -> list[str]:
    _, problems = validate(Car, document(text))
    return [problem.render() for problem in problems]


def test_good_file_is_the_model() -> None:
    car, problems = validate(Car, document("name: Mini\nwheels: [{size: 10}]\nparts: {a: 5%}"))
    assert problems == ()
    assert car is not None
    assert car.wheels[0].size == 10


def test_every_problem_is_reported_at_its_place_in_the_order_of_the_file() -> None:
    text = "name: 1.10\nwheels:\n- {size: 0, kind: reer}\n- {kind: rear, rim: 1}\n- round\nparts: {a: 5, b: 1%}\n"
    assert said(text) == [
        'car.yaml:1:7: error F013: this must be text\n  name: 1.10\n        ^^^^\n  fix: write "1.10", in quotes',
        "car.yaml:3:10: error F013: this must be at least 1\n  - {size: 0, kind: reer}\n           ^",
        "car.yaml:3:19: error F013: this must be `front` or `rear`\n  - {size: 0, kind: reer}\n"
        "                    ^^^^\n  fix: did you mean `rear`?",
        "car.yaml:4:3: error F012: the key `size` is missing here\n  - {kind: rear, rim: 1}\n"
        "    ^^^^^^^^^^^^^^^^^^^^\n  fix: add `size: ...`",
        "car.yaml:4:16: error F011: `rim` comes in a later version\n  - {kind: rear, rim: 1}\n                 ^^^\n"
        "  fix: delete the key",
        "car.yaml:5:3: error F013: this must be a mapping of keys to values\n  - round\n    ^^^^^\n"
        "  fix: write `key: value` lines",
        "car.yaml:6:12: error F013: `5` is not a percentage\n  parts: {a: 5, b: 1%}\n             ^\n"
        "  fix: write `5%`, with the sign",
    ]  # fmt: skip


def test_unknown_key_names_the_nearest_and_a_misspelt_key_is_not_missing_as_well() -> None:
    assert said("nmae: x\n") == [
        "car.yaml:1:1: error F011: the key `nmae` is not known here\n  nmae: x\n  ^^^^\n  fix: did you mean `name`?"
    ]
    assert said("name: x\nwheels: [{size: 1, colour: red}]") == [
        "car.yaml:2:20: error F011: the key `colour` is not known here\n  wheels: [{size: 1, colour: red}]\n"
        "                     ^^^^^^\n  fix: known here: every, kind, size"
    ]


def test_spelling_of_keys_in_other_conventions_is_recognised() -> None:
    assert nearest("perTry", ["per_try", "attempts"]) == "per_try"
    assert nearest("zzz", ["per_try"]) is None
    assert did_you_mean("zzz", ["b", "a"]) == "known here: a, b"


def test_key_without_a_value_is_a_problem_when_asked_for() -> None:
    text = "name: x\nwheels:\nmerge: {a: null}\n"
    assert validate(Car, document(text))[1] != ()  # a list may not be null anyway
    outcome = examine(Car, document("name: x\nparts:\nmerge: {a: null}\n"), nulls_under="merge")
    assert [problem.render() for problem in outcome.problems] == [
        "car.yaml:2:1: error F013: there is no value here\n  parts:\n  ^^^^^\n  fix: write one, or delete the key"
    ]
    assert outcome.wrong == (("parts",),)


def test_schema_has_no_nulls_and_no_needless_titles() -> None:
    schema = json_schema(Car, "A car")
    assert schema["title"] == "A car"
    assert "null" not in str(schema)
    assert schema["$defs"]["Wheel"]["properties"]["every"] == {
        "title": "duration", "type": "string", "pattern": "^(?:[0-9]+(?:\\.[0-9]{1,3})?(?:ms|s|m|h))+$",
        "examples": ["800ms", "3s", "1h30m"],
    }  # fmt: skip
    assert "rim" not in schema["$defs"]["Wheel"]["properties"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("stabel", "stable"),
        ("cnaary", "canary"),
        ("Max_Ejected", "max-ejected"),
        ("v11", "v1"),
        ("xyz.default", None),
        ("v3", None),
        ("production", None),
    ],
)
def test_what_was_meant_is_few_slips_away(word: str, meant: str | None) -> None:
    known = ["stable", "canary", "max-ejected", "v1", "v2", "abc.default", "introduction"]
    assert nearest(word, known) == meant


def test_of_very_many_known_words_a_few_are_named() -> None:
    known = {f"name_{number}" for number in range(100)} | {"ratelimit_config", "redis_ca", "consul_ca"}
    assert did_you_mean("config", known) == "did you mean `ratelimit_config`?"
    assert did_you_mean("ca", known) == "did you mean `consul_ca` or `redis_ca`?"
    assert did_you_mean("name_1x", known) == "did you mean `name_1`?"
    assert did_you_mean("nomen", known).startswith("known here, of 103, and most like it: ")
    assert did_you_mean("nomen", known).count(",") < 8
