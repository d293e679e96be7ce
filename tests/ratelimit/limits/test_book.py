"""A directory of limit files: one bad edit costs its own domain's news, and nothing else."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimit.limits.book import LimitBook, Options
from tests.ratelimit.limits.trees import entries, met

MERGED = Options(merge_domains=True)


def file(domain: str, *descriptors: str) -> str:
    """Descriptors as `a=x:5`, `a:5`: key, value, requests a minute."""
    lines = [f"domain: {domain}", "descriptors:" if descriptors else "descriptors: []"]
    for word in descriptors:
        name, _, requests = word.partition(":")
        key, _, value = name.partition("=")
        said = f"key: {key}, value: '{value}'" if value else f"key: {key}"
        lines.append(f"- {{{said}, rate_limit: {{unit: minute, requests_per_unit: {requests}}}}}")
    return "\n".join(lines) + "\n"


BROKEN = "domain: a\ndescriptors: [\n"


def in_force(book: LimitBook) -> dict[str, dict[str, int]]:
    """Requests a minute by path, by domain."""
    return {
        name: {limit.path: limit.requests for limit in domain.limits()} for name, domain in book.tree.domains.items()
    }


def errors(book: LimitBook) -> list[str]:
    return [f"{problem.where} {problem.code}" for problem in book.problems if problem.is_error]


def test_a_broken_edit_keeps_its_own_domain_and_the_others_change() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:1")})
    book = book.edited({"a.yaml": BROKEN, "b.yaml": file("b", "k:2")})
    assert in_force(book) == {"a": {"k": 1}, "b": {"k": 2}}
    assert errors(book) == ["a.yaml:3:1 F004"]
    assert book.stale == ("a.yaml",)
    assert book.stale_domains == {"a"}
    mended = book.edited({"a.yaml": file("a", "k:3")})
    assert in_force(mended) == {"a": {"k": 3}, "b": {"k": 2}}
    assert errors(mended) == []


def test_a_broken_part_of_a_merged_domain_keeps_that_part() -> None:
    book = LimitBook(MERGED).edited({"1.yaml": file("a", "k:1"), "2.yaml": file("a", "l:1")})
    book = book.edited({"1.yaml": BROKEN, "2.yaml": file("a", "l:2")})
    assert in_force(book) == {"a": {"k": 1, "l": 2}}


def test_what_never_was_good_takes_nothing_down() -> None:
    book = LimitBook().edited({"a.yaml": BROKEN, "b.yaml": file("b", "k:1")})
    assert in_force(book) == {"b": {"k": 1}}


def test_empty_and_unreadable_files_keep_what_was_good() -> None:
    good = LimitBook().edited({"a.yaml": file("a", "k:1")})
    for content in ("", "# nothing\n", OSError(13, "Permission denied"), b"\xff\xfe"):
        book = good.edited({"a.yaml": content})
        assert book.tree is good.tree
        assert len(errors(book)) == 1


def test_a_deletion_is_obeyed() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:1")}).edited({"a.yaml": None})
    assert in_force(book) == {"b": {"k": 1}}


def test_unchanged_domains_are_the_same_objects() -> None:
    first = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:1")})
    second = first.edited({"a.yaml": file("a", "k:2")})
    assert second.tree.domains["b"] is first.tree.domains["b"]
    assert second.tree.domains["a"] is not first.tree.domains["a"]
    assert first.edited({"a.yaml": BROKEN}).tree is first.tree


def test_a_domain_belongs_to_the_file_that_had_it_first() -> None:
    book = LimitBook().edited({"z.yaml": file("a", "k:1")}).edited({"a.yaml": file("a", "k:2")})
    assert in_force(book) == {"a": {"k": 1}}
    assert errors(book) == ["a.yaml:1:9 L002"]
    (problem,) = book.problems
    assert "z.yaml" in problem.message


def test_of_new_files_the_first_path_has_the_domain() -> None:
    for look in (LimitBook().edited, LimitBook().compared):
        book = look({"z.yaml": file("a", "k:1"), "b.yaml": file("a", "k:2"), "c.yaml": file("c", "k:3")})
        assert in_force(book) == {"a": {"k": 2}, "c": {"k": 3}}
        assert errors(book) == ["z.yaml:1:9 L002"]


def test_what_waits_is_taken_when_the_other_lets_go() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("a", "k:2")})
    gone = book.edited({"a.yaml": None})
    assert in_force(gone) == {"a": {"k": 2}}
    assert errors(gone) == []
    moved = book.edited({"a.yaml": file("other", "k:1")})
    assert in_force(moved) == {"a": {"k": 2}, "other": {"k": 1}}


def test_domains_may_be_swapped_in_one_edit() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:2")})
    swapped = book.edited({"a.yaml": file("b", "k:3"), "b.yaml": file("a", "k:4")})
    assert in_force(swapped) == {"a": {"k": 4}, "b": {"k": 3}}
    assert errors(swapped) == []


def test_a_refused_edit_keeps_what_its_file_said_before() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:2")})
    book = book.edited({"b.yaml": file("a", "k:3")})
    assert in_force(book) == {"a": {"k": 1}, "b": {"k": 2}}
    assert errors(book) == ["b.yaml:1:9 L002"]


def test_merged_domains_are_put_together_in_the_order_of_paths() -> None:
    book = LimitBook(MERGED).edited({"2.yaml": file("a", "k=x*:2"), "1.yaml": file("a", "k=xy*:1")})
    assert list(in_force(book)["a"]) == ["k_xy*", "k_x*"]
    assert met(book.tree.match("a", entries("k=xyz"))) == (1,)


def test_a_descriptor_of_a_merged_domain_belongs_to_one_file() -> None:
    book = LimitBook(MERGED).edited({"1.yaml": file("a", "k=x:1", "l:1"), "2.yaml": file("a", "m:2", "k=x:2")})
    assert in_force(book) == {"a": {"k_x": 1, "l": 1}}
    assert errors(book) == ["2.yaml:4:9 L003"]
    assert in_force(book.edited({"1.yaml": file("a", "l:1")})) == {"a": {"l": 1, "m": 2, "k_x": 2}}


def test_a_descriptor_moves_between_files_in_one_edit() -> None:
    book = LimitBook(MERGED).edited({"1.yaml": file("a", "k:1", "l:1"), "2.yaml": file("a", "m:1")})
    moved = book.edited({"1.yaml": file("a", "l:1"), "2.yaml": file("a", "m:1", "k:1")})
    assert in_force(moved) == {"a": {"l": 1, "m": 1, "k": 1}}
    assert errors(moved) == []


def test_a_name_of_another_file_of_the_domain_may_be_replaced() -> None:
    one = "domain: a\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: n}]}}]\n"
    other = "domain: a\ndescriptors: [{key: l, rate_limit: {unit: day, requests_per_unit: 1, name: n}}]\n"
    alone = LimitBook(MERGED).edited({"1.yaml": one})
    assert [problem.code for problem in alone.problems] == ["L015"]
    both = alone.edited({"2.yaml": other})
    assert both.problems == ()
    assert [
        problem.code for problem in both.edited({"2.yaml": other.replace("domain: a", "domain: b")}).problems
    ] == ["L015"]


def test_a_missing_file_is_held_after_a_restart_until_it_is_confirmed() -> None:
    texts = {"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:1")}
    book = LimitBook.seeded(texts).compared({"a.yaml": None, "b.yaml": texts["b.yaml"]})
    assert in_force(book) == {"a": {"k": 1}, "b": {"k": 1}}
    assert book.held == ("a.yaml",)
    assert in_force(book.confirm(["a.yaml"])) == {"b": {"k": 1}}
    assert book.confirm(["b.yaml"]) is book


def test_a_file_that_was_renamed_while_away_is_not_held() -> None:
    book = LimitBook.seeded({"a.yaml": file("a", "k:1")}).compared({"a.yaml": None, "new.yaml": file("a", "k:2")})
    assert in_force(book) == {"a": {"k": 2}}
    assert (book.held, errors(book)) == ((), [])


def test_a_file_renamed_and_broken_in_one_edit_keeps_its_last_good_version() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:1")})
    renamed = book.edited({"a.yaml": None, "new.yaml": "domain: a  # [\ndescriptors: [\n"})
    assert renamed.tree is book.tree
    assert renamed.stale == ("new.yaml",)
    other = book.edited({"a.yaml": None, "new.yaml": "domain: other\ndescriptors: [\n"})
    assert in_force(other) == {"b": {"k": 1}}


@pytest.mark.parametrize("cut", ["", "d", "domain", "domain:", "descriptors: [", "\x00\x01"])
def test_a_file_renamed_and_cut_off_before_its_domain_keeps_its_last_good_version(cut: str) -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:1")})
    renamed = book.edited({"a.yaml": None, "new.yaml": cut})
    assert renamed.tree is book.tree
    assert renamed.edited({"new.yaml": file("a", "k:2")}).stale == ()
    three = book.edited({"c.yaml": file("c", "k:1")})
    both = three.edited({"a.yaml": None, "b.yaml": None, "new.yaml": cut})
    assert in_force(both) == {"c": {"k": 1}}, "which of two it was is not known"


def test_what_the_store_kept_is_in_force_at_once_and_stale() -> None:
    book = LimitBook.seeded({"a.yaml": file("a", "k:1"), "b.yaml": BROKEN})
    assert in_force(book) == {"a": {"k": 1}}
    assert book.stale == ("a.yaml",)
    read = book.compared({"a.yaml": file("a", "k:1")})
    assert (read.stale, read.good_texts) == ((), {"a.yaml": file("a", "k:1")})


def test_shared_keys_refuse_what_envoyproxy_ratelimit_has_no_like_of() -> None:
    text = "domain: a\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1, unit_multiplier: 2}}]\n"
    book = LimitBook(Options(shared_keys=True)).edited({"a.yaml": text})
    assert errors(book) == ["a.yaml:2:70 L011"]
    assert errors(LimitBook().edited({"a.yaml": text})) == []


CONTENTS = st.sampled_from(
    [None, "", BROKEN, file("a", "k:1"), file("a", "l:2"), file("b", "k:3"), file("b", "k:4", "m:5")]
)
EDITS = st.lists(st.dictionaries(st.sampled_from(["1.yaml", "2.yaml", "3.yaml"]), CONTENTS, min_size=1), max_size=6)


@given(EDITS, st.booleans())
def test_after_any_history_good_files_are_in_force(history: list[Mapping[str, str | None]], merged: bool) -> None:
    """What is in force is what the good texts say, no descriptor has two files, and where there
    is no error the files are in force as they are, however it came about."""
    book, now = LimitBook(Options(merge_domains=merged)), dict[str, str | None]()
    for edit in history:
        book = book.edited(edit)
        now |= edit
    texts = {path: text for path, text in now.items() if text is not None}
    again = LimitBook(Options(merge_domains=merged)).edited(book.good_texts)
    assert in_force(again) == in_force(book)
    assert errors(again) == []
    assert set(book.good_texts) <= {*texts, *book.held}
    assert in_force(book) or not any(in_force(LimitBook().edited(edit)) for edit in history)
    if not errors(book):
        assert book.good_texts == texts
    fresh = LimitBook(Options(merge_domains=merged)).edited(texts)
    if not errors(fresh) and not errors(book):
        assert in_force(fresh) == in_force(book)


# None left


def test_when_the_last_files_go_their_limits_stay() -> None:
    before = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:2"), "c.yaml": file("c", "k:3")})
    one_less = before.edited({"c.yaml": None})
    assert in_force(one_less) == {"a": {"k": 1}, "b": {"k": 2}}
    assert errors(one_less) == []
    book = one_less.edited({"a.yaml": None, "b.yaml": None})
    assert book.tree is one_less.tree
    assert book.held == ("a.yaml", "b.yaml")
    assert errors(book) == ["a.yaml L026"]
    assert "1 more" in book.problems[0].message
    assert book.good_texts == one_less.good_texts


def test_a_good_file_ends_that_none_is_left() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:2")})
    gone = book.edited({"a.yaml": None, "b.yaml": None})
    back = gone.edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:2")})
    assert in_force(back) == in_force(book)
    assert (errors(back), back.held) == ([], ())
    lifted = gone.edited({"other.yaml": file("a")})
    assert in_force(lifted) == {"a": {}}
    assert (errors(lifted), lifted.held) == ([], ())
    confirmed = gone.confirm(gone.held)
    assert (in_force(confirmed), errors(confirmed)) == ({}, [])


def test_a_broken_file_does_not_end_that_none_is_left() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:2")})
    gone = book.edited({"a.yaml": None, "b.yaml": None})
    broken = gone.edited({"a.yaml": BROKEN})
    assert in_force(broken) == in_force(book)
    assert errors(broken) == ["a.yaml:3:1 F004", "b.yaml L026"]
    assert in_force(broken.edited({"a.yaml": None})) == in_force(book)
    beside = (
        LimitBook().edited({"a.yaml": file("a", "k:1"), "x.yaml": "domain: x\nkye: 1\n"}).edited({"a.yaml": None})
    )
    assert in_force(beside) == {"a": {"k": 1}}


def test_none_left_and_then_another_life_holds_each_file() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "b.yaml": file("b", "k:2")})
    gone = book.edited({"a.yaml": None, "b.yaml": None})
    after = gone.compared({"a.yaml": file("a", "k:3")})
    assert in_force(after) == {"a": {"k": 3}, "b": {"k": 2}}
    assert [problem.code for problem in after.problems] == ["F014"]


# Whose errors


@pytest.mark.parametrize(
    "text",
    [
        "domain: extra\ndescriptors: [{kye: x}]\n",
        "# first\n'domain': 'extra'\ndescriptors: [\n",
        'domain: "extra" # the extra one\ndescriptors: [\n',
        '{"domain": "extra", "descriptors": [{"kye": "x"}]}',
        '{\n  "domain" : "extra",\n  "descriptors": [{\n',
        "{domain: extra, descriptors: [{kye: x}]}",
    ],
)
def test_the_domain_of_a_refused_file_is_known(text: str) -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1"), "extra.yaml": text})
    (said,) = book.errors_of("extra")
    assert said.startswith("extra.yaml describes the domain `extra` and has an error, so nothing of it is in force: ")
    assert errors(book)[0] in said
    assert book.errors_of("a") == book.errors_of("x") == ()
    assert book.edited({"extra.yaml": file("extra")}).errors_of("extra") == ()
    assert book.edited({"extra.yaml": None}).errors_of("extra") == ()


def test_a_file_in_error_with_a_good_version_says_that_it_is_in_force() -> None:
    book = LimitBook().edited({"a.yaml": file("a", "k:1")}).edited({"a.yaml": BROKEN, "b.yaml": file("a", "k:2")})
    assert [said.partition(": ")[0] for said in book.errors_of("a")] == [
        "a.yaml describes the domain `a` and has an error, so its last good version is in force",
        "b.yaml describes the domain `a` and has an error, so nothing of it is in force",
    ]
    assert "L002" in book.errors_of("a")[1]


@given(st.text() | st.binary())
def test_any_text_may_speak_of_a_domain(text: str | bytes) -> None:
    assert LimitBook().edited({"x.yaml": text}).errors_of("other") == ()
