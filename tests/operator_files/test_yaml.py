"""Text to data: YAML 1.2's scalars, JSON alike, positions, and problems instead of exceptions."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operator_files.problem import Problem
from operator_files.yaml import Document, Loc, parse


def data(text: str | bytes) -> object:
    found = parse(text, "f.yaml")
    assert isinstance(found, Document), found.render()
    return found.data


def problem(text: str | bytes, **limits: int) -> Problem:
    found = parse(text, "f.yaml", **limits)
    assert isinstance(found, Problem), found.data
    return found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("on", "on"), ("yes", "yes"), ("y", "y"), ("off", "off"),
        ("12:30", "12:30"), ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z"), ("1_000", "1_000"), ("0b1", "0b1"),
        ("true", True), ("False", False), ("tRUE", "tRUE"),
        ("null", None), ("~", None), ("", None), ("nULL", "nULL"),
        ("012", 12), ("0o17", 15), ("0x1F", 31), ("-7", -7), ("+7", 7), ("0o9", "0o9"),
        ("1.50", 1.5), (".5", 0.5), ("1e3", 1000.0), ("1.", 1.0), ("+.inf", math.inf), ("-.INF", -math.inf),
        ("90%", "90%"), ("3s", "3s"), ("1.2.3", "1.2.3"), ('"1"', "1"), ("'no'", "no"),
        ("!!str 1", "1"), ("!!float 1", 1.0), ("!!int 0x10", 16),
    ],
)  # fmt: skip
def test_core_schema(text: str, value: object) -> None:
    assert data(f"a: {text}\n") == {"a": value}


def test_not_a_number_is_one() -> None:
    found = data("a: .nan")
    assert isinstance(found, dict)
    assert math.isnan(found["a"])


def test_keys_are_text_whatever_they_look_like() -> None:
    assert data("1: a\nno: b\ntrue: c\nnull: d\n1.50: e") == {
        "1": "a",
        "no": "b",
        "true": "c",
        "null": "d",
        "1.50": "e",
    }


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("a<{[:#- é"), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text("abcde", min_size=1), plain_json, min_size=1), st.booleans())
def test_json_means_the_same_by_the_fast_way_and_as_yaml(value: dict[str, object], pretty: bool) -> None:
    """The comment makes the text YAML only, so that it takes the slow way."""
    text = json.dumps(value, indent=2 if pretty else None, ensure_ascii=False)
    assert data(text) == value
    assert data(f"# yaml\n{text}\n") == value


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_no_text_raises(text: str | bytes) -> None:
    found = parse(text, "f.yaml")
    if isinstance(found, Problem):
        assert found.render()
        assert found.line <= (text if isinstance(text, bytes) else text.encode(errors="replace")).count(b"\n") + 99


SHORT = "a: 1\nb:\n- x: {y: zz}\n  'k k': >\n    long\n    text\n- [1, 22]\n"


@pytest.mark.parametrize(
    ("loc", "key", "place"),
    [
        (("a",), False, (1, 4, 1)),
        (("a",), True, (1, 1, 1)),
        (("b", 0, "x"), False, (3, 6, 7)),
        (("b", 0, "x", "y"), False, (3, 10, 2)),
        (("b", 0, "x", "y"), True, (3, 7, 1)),
        (("b", 0, "k k"), True, (4, 3, 5)),
        (("b", 1, 1), False, (7, 7, 2)),
        (("b", 1, 9), False, (7, 3, 7)),
        (("b", 0, "missing"), False, (3, 3, 10)),
        ((), False, (1, 1, 4)),
    ],
)
def test_places(loc: Loc, key: bool, place: tuple[int, int, int]) -> None:
    document = parse(SHORT, "f.yaml")
    assert isinstance(document, Document)
    assert document.at(loc, key=key) == place


def test_places_in_json_and_after_a_byte_order_mark() -> None:
    document = parse(b'\xef\xbb\xbf{\n\t"a": {"b": 5}\n}', "f.json")
    assert isinstance(document, Document)
    assert document.at(("a", "b")) == (2, 13, 1)
    assert document.line(2) == '\t"a": {"b": 5}'


@pytest.mark.parametrize("text", ["", "\n\n", "# only this\n", "---\n", "~", "null"])
def test_file_that_says_nothing(text: str) -> None:
    assert problem(text).code == "F003"


def test_escaped_surrogates_of_json() -> None:
    assert data('{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
    assert problem('{"a": "\\ud83d"}').code == "F004"


def rendered(text: str | bytes) -> str:
    return problem(text).render()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "a: 1\nb: 2\na: 3\n",
            "f.yaml:3:1: error F006: the key `a` comes twice; it is already on line 1\n"
            "  a: 3\n  ^\n  fix: keep one of the two",
        ),
        (
            '{"a": 1, "a": 2}',
            "f.yaml:1:10: error F006: the key `a` comes twice; it is already on line 1\n"
            '  {"a": 1, "a": 2}\n           ^^^\n  fix: keep one of the two',
        ),
        (
            "a:\n\t- b\n",
            "f.yaml:2:1: error F004: a tab stands where only spaces may indent\n"
            "  \t- b\n  ^\n  fix: indent with spaces",
        ),
        (
            "a: b: c\n",
            "f.yaml:1:5: error F004: a `:` stands where no key can be\n"
            "  a: b: c\n      ^\n  fix: indent the line like its neighbours, or quote the text",
        ),
        (
            "a: [1,\nb: 2\n",
            "f.yaml:3:1: error F004: did not find expected ',' or ']' "
            "(while parsing a flow sequence, which begins on line 1)",
        ),
        (
            b"a: b\nb: \xff\n",
            "f.yaml:2:4: error F001: the byte 0xFF here is not UTF-8\n  b: \ufffd\n     ^\n"
            "  fix: save the file as UTF-8",
        ),
        (
            "a: \x07",
            "f.yaml:1:4: error F005: the character U+0007 may not stand in YAML\n  a: \ufffd\n     ^\n"
            '  fix: delete it, or write it as an escape in double quotes ("\\u....")',
        ),
        (
            "a: 1\n---\nb: 2\n",
            "f.yaml:2:1: error F007: a second document begins here\n  ---\n  ^\n  fix: put it into a file of its own",
        ),
        (
            "x: &x {a: 1}\ny:\n  <<: *x\n",
            "f.yaml:3:3: error F008: `<<` (merge) is not part of YAML 1.2\n    <<: *x\n    ^^\n"
            "  fix: write the keys out, or give the whole value by an alias",
        ),
        (
            "a: *nobody",
            "f.yaml:1:4: error F004: found undefined alias\n  a: *nobody\n     ^\n"
            "  fix: define the anchor (`&name`) above its use, or put the text in quotes",
        ),
        (
            "a:\n  value: *\n",
            "f.yaml:2:11: error F004: `*` and `&` begin the name of an alias or an anchor, and this is none\n"
            '    value: *\n            ^\n  fix: put the text in quotes: "*"',
        ),
        (
            "a:\n  b: 1\n\tc: 2\n",
            "f.yaml:3:1: error F004: a tab stands where only spaces may indent "
            "(while scanning a plain scalar, which begins on line 2)\n  \tc: 2\n  ^\n  fix: indent with spaces",
        ),
        (
            "a: !!timestamp 2001-01-01",
            "f.yaml:1:4: error F010: the tag `!!timestamp` does not fit here\n  a: !!timestamp 2001-01-01\n"
            "     ^^^^^^^^^^^^^^^^^^^^^^\n  fix: leave it out",
        ),
        (
            "a: !x {b: 1}",
            "f.yaml:1:4: error F010: the tag `!x` is not known here\n  a: !x {b: 1}\n     ^^^^^^^^^\n"
            "  fix: leave it out",
        ),
        (
            "? [a]\n: b",
            "f.yaml:1:3: error F004: a key must be a single word or text\n  ? [a]\n    ^^^",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_shown(text: str | bytes, shown: str) -> None:
    assert rendered(text) == shown


def test_alias_gives_a_whole_value_again() -> None:
    assert data("a: &p {x: 1}\nb: *p\n") == {"a": {"x": 1}, "b": {"x": 1}}


def test_a_few_bytes_cannot_become_a_billion_values() -> None:
    names = "abcdefghij"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in pairwise(names)]
    assert problem("\n".join(lines)).code == "F009"


@pytest.mark.parametrize("text", ["a: &a [*a]", "[" * 5000, "- " * 5000, '{"a":' * 5000, "- " * 200])
def test_endless_or_deep_nesting(text: str) -> None:
    assert problem(text).code in ("F009", "F004")


def test_number_that_python_does_not_read() -> None:
    assert problem("a: " + "9" * 5000).code == "F013"


def test_size_is_limited() -> None:
    assert problem("a: " + "b" * 100, max_bytes=50).render() == (
        "f.yaml: error F002: the file has 103 bytes; at most 50 are read\n  fix: split the file"
    )
