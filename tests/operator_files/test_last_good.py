"""The last good version of every file: what an edit, a deletion and a restart do to it."""

from operator_files import codes
from operator_files.last_good import LastGood, Reading
from operator_files.problem import Problem


def good(text: str) -> Reading[str]:
    return Reading(text, text.upper())


def bad(text: str = "{") -> Reading[str]:
    return Reading(text, None, (Problem("F004", "broken", "f"),))


NOTHING: LastGood[str] = LastGood()
EMPTY: Reading[str] = Reading("", None, (Problem(codes.EMPTY.id, "the file is empty", "f"),))


def values(files: LastGood[str]) -> dict[str, str | None]:
    return {path: entry.value for path, entry in files.entries.items()}


def start() -> LastGood[str]:
    return NOTHING.edited({"a": good("one"), "b": good("two")})


def test_broken_edit_keeps_the_value_and_the_next_good_one_replaces_it() -> None:
    broken = start().edited({"a": bad()})
    assert values(broken) == {"a": "ONE", "b": "TWO"}
    assert broken.stale == ("a",)
    assert broken.good_texts == {"a": "one", "b": "two"}
    assert [problem.code for problem in broken.problems] == ["F004"]
    healed = broken.edited({"a": good("three")})
    assert values(healed) == {"a": "THREE", "b": "TWO"}
    assert (healed.stale, healed.problems) == ((), ())


def test_broken_file_that_never_was_good_has_no_value() -> None:
    files = start().edited({"c": bad()})
    assert values(files) == {"a": "ONE", "b": "TWO", "c": None}
    assert files.good_texts == {"a": "one", "b": "two"}
    assert files.stale == ()


def test_live_deletion_is_obeyed_and_an_empty_file_is_not_one() -> None:
    assert values(start().edited({"a": None})) == {"b": "TWO"}
    assert values(start().edited({"a": EMPTY})) == {"a": "ONE", "b": "TWO"}


def test_an_edit_leaves_the_older_value_alone_and_keeps_the_identity_of_other_files() -> None:
    old = start()
    new = old.edited({"a": good("three")})
    assert values(old) == {"a": "ONE", "b": "TWO"}
    assert new.entries["b"] is old.entries["b"]
    assert old.edited({}) is old


def test_after_a_restart_what_is_missing_or_empty_is_held_until_confirmed() -> None:
    seeded = LastGood.seeded({"a": good("one"), "b": good("two"), "c": good("three"), "d": good("four")})
    assert seeded.stale == ("a", "b", "c", "d")
    files = seeded.first_read({"b": EMPTY, "c": bad(), "d": good("five")})
    assert values(files) == {"a": "ONE", "b": "TWO", "c": "THREE", "d": "FIVE"}
    assert files.held == ("a", "b")
    assert files.stale == ("a", "b", "c")
    assert [(problem.file, problem.code) for problem in files.problems] == [
        ("a", "F014"),
        ("b", "F014"),
        ("f", "F004"),
    ]
    assert files.good_texts == {"a": "one", "b": "two", "c": "three", "d": "five"}
    assert values(files.confirm(["a", "c"])) == {"b": "TWO", "c": "THREE", "d": "FIVE"}


def test_held_file_that_comes_back_or_is_edited_is_obeyed() -> None:
    held = LastGood.seeded({"a": good("one")}).first_read({})
    assert values(held.edited({"a": good("two")})) == {"a": "TWO"}
    assert held.edited({"a": good("two")}).held == ()
    assert values(held.edited({"a": None})) == {}


def test_without_a_store_nothing_is_held() -> None:
    files = NOTHING.first_read({"a": good("one"), "b": EMPTY})
    assert values(files) == {"a": "ONE", "b": None}
    assert files.held == ()


def test_stored_text_that_no_longer_reads_well_is_left_out() -> None:
    assert values(LastGood.seeded({"a": bad(), "b": good("two")})) == {"b": "TWO"}
