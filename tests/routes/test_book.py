"""A directory of route files: one bad file or edit never takes down another, and good ones are taken at once."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.rule import BrokenRoutes, ServiceRoutes
from mesh.service import Endpoint, Port, Service, ServiceName
from routes import book as book_module
from routes.book import RouteBook
from routes.parse import Content, Parsed, Scope, parse

SPLIT = "subsets: {old: {v: '1'}, new: {v: '2'}}\nrules: [{to: {old: 90%, new: 10%}}]\n"


def file(service: str, more: str = "") -> bytes:
    return f"version: 1\nservice: {service}\n{more}".encode()


def hosts(book: RouteBook) -> dict[str, tuple[str, ...] | str]:
    """Service -> its hosts, or the code of its broken file."""
    return {
        name.name: routes.hosts if isinstance(routes, ServiceRoutes) else routes.code
        for name, routes in sorted(book.routes.items())
    }


def sources(book: RouteBook) -> dict[str, str]:
    return {name.name: routes.source for name, routes in sorted(book.routes.items())}


def codes(book: RouteBook) -> list[tuple[str, str]]:
    return [(problem.file, problem.code) for problem in book.problems]


def name(text: str) -> ServiceName:
    return ServiceName("default", text)


def known(*names: str, **versions: str) -> dict[ServiceName, Service]:
    """Services without endpoints, and services with an endpoint for each character, labelled `v`."""
    found = {
        stem: tuple(
            Endpoint(f"10.0.0.{n}", 80, labels=frozenset({("v", v)})) for n, v in enumerate(versions.get(stem, ""))
        )
        for stem in (*names, *versions)
    }
    return {name(stem): Service(name(stem), (Port("http", 80, endpoints=found[stem]),)) for stem in found}


def start(**files: bytes) -> RouteBook:
    return RouteBook().compared({f"{stem}.yaml": content for stem, content in files.items()})


def test_edit_changes_one_service_and_the_others_keep_their_identity() -> None:
    old = start(a=file("a"), b=file("b"))
    new = old.edited({"a.yaml": file("a", "hosts: [a.example]")})
    assert hosts(new) == {"a": ("a.example",), "b": ()}
    assert new.routes[name("b")] is old.routes[name("b")]
    assert hosts(old) == {"a": (), "b": ()}


def test_rewriting_a_file_without_a_difference_changes_no_value() -> None:
    old = start(a=file("a"))
    assert old.edited({"a.yaml": file("a", "# a comment\n")}).routes[name("a")] is old.routes[name("a")]


@pytest.mark.parametrize(
    "broken", [b"", b"{", file("a", "foo: 1"), b"\xff", file("a", "rules: [{to: {a: 99%}}]"), OSError(13, "no")]
)
def test_broken_edit_of_any_kind_changes_nothing_and_the_next_good_one_is_taken(broken: bytes | OSError) -> None:
    old = start(a=file("a", "hosts: [a.example]"), b=file("b"))
    new = old.edited({"a.yaml": broken})
    assert dict(new.routes) == dict(old.routes)
    assert new.stale == ("a.yaml",)
    assert new.good_texts == old.good_texts
    assert [problem.file for problem in new.problems] == ["a.yaml"]
    healed = new.edited({"a.yaml": file("a")})
    assert (hosts(healed), healed.problems, healed.stale) == ({"a": (), "b": ()}, (), ())


def test_file_that_never_was_good_answers_with_its_code_until_it_is() -> None:
    book = start(a=file("a", "foo: 1"), b=file("b"))
    assert book.routes[name("a")] == BrokenRoutes(name("a"), "F011", "a.yaml")
    assert hosts(book.edited({"a.yaml": file("a")})) == {"a": (), "b": ()}
    assert hosts(book.edited({"a.yaml": None})) == {"b": ()}
    assert book.good_texts.keys() == {"b.yaml"}


def test_broken_copy_of_a_good_file_does_not_take_its_service() -> None:
    assert hosts(start(a=file("a"), z=file("a", "foo: 1"))) == {"a": ()}


def test_change_of_kind_alone_is_a_change() -> None:
    """An exact match that becomes a prefix, with the same text in it."""
    more = "rules: [{match: [{path: /a}], to: a}, {to: a}]"
    old = start(a=file("a", more))
    new = old.edited({"a.yaml": file("a", more.replace("path:", "prefix:"))})
    assert new.routes[name("a")] != old.routes[name("a")]
    assert new.routes[name("a")] is not old.routes[name("a")]


def test_deletion_and_rename_and_a_change_of_service_are_obeyed() -> None:
    book = start(a=file("a"), b=file("b"))
    assert hosts(book.edited({"a.yaml": None})) == {"b": ()}
    renamed = book.edited({"a.yaml": None, "c.yaml": file("a")})
    assert sources(renamed) == {"a": "c.yaml", "b": "b.yaml"}
    assert sources(book.edited({"a.yaml": file("x")})) == {"b": "b.yaml", "x": "a.yaml"}


def test_rename_with_a_mistake_keeps_the_last_good_version() -> None:
    book = start(a=file("a", SPLIT)).edited({"a.yaml": None, "c.yaml": file("a", "foo: 1")})
    assert isinstance(book.routes[name("a")], ServiceRoutes)
    assert book.stale == ("c.yaml",)
    assert hosts(book.edited({"c.yaml": file("a")})) == {"a": ()}


def test_service_in_two_files_belongs_to_the_first_path_and_both_are_named() -> None:
    book = start(b=file("a", "hosts: [b.example]"), a=file("a", "hosts: [a.example]"))
    assert hosts(book) == {"a": ("a.example",)}
    assert [problem.render() for problem in book.problems] == [
        "b.yaml:2:10: error R021: the service `a.default` is already described in a.yaml\n"
        "  service: a\n           ^\n  fix: describe a service in one file only"
    ]
    assert hosts(book.edited({"a.yaml": None})) == {"a": ("b.example",)}
    assert book.edited({"a.yaml": None}).problems == ()


def test_host_in_two_new_files_costs_the_later_one_that_host_only() -> None:
    book = start(a=file("a", "hosts: [x.example]"), b=file("b", "hosts: [X.example, y.example]"))
    assert hosts(book) == {"a": ("x.example",), "b": ("y.example",)}
    assert [problem.render() for problem in book.problems] == [
        "b.yaml:3:9: error R020: the host `x.example` is already claimed in a.yaml\n"
        "  hosts: [X.example, y.example]\n          ^^^^^^^^^\n  fix: leave it to one of the two files"
    ]


def test_edit_that_takes_a_host_of_another_file_is_not_taken_until_that_lets_go() -> None:
    book = start(a=file("a"), z=file("z", "hosts: [x.example]"))
    taking = book.edited({"a.yaml": file("a", "hosts: [x.example, own.example]")})
    assert hosts(taking) == {"a": (), "z": ("x.example",)}
    assert codes(taking) == [("a.yaml", "R020")]
    freed = taking.edited({"z.yaml": file("z")})
    assert hosts(freed) == {"a": ("x.example", "own.example"), "z": ()}
    assert freed.problems == ()


def test_hosts_can_be_swapped_in_one_edit() -> None:
    book = start(a=file("a", "hosts: [a.example]"), b=file("b", "hosts: [b.example]"))
    swapped = book.edited({"a.yaml": file("a", "hosts: [b.example]"), "b.yaml": file("b", "hosts: [a.example]")})
    assert hosts(swapped) == {"a": ("b.example",), "b": ("a.example",)}


def test_half_of_a_swap_that_is_refused_holds_the_other_half_back() -> None:
    """`a` keeps its host by a mistake of its own, so `b` cannot have it."""
    book = start(a=file("a", "hosts: [a.example]"), b=file("b", "hosts: [b.example]"))
    half = book.edited({"a.yaml": file("a", "hosts: [b.example]\nfoo: 1"), "b.yaml": file("b", "hosts: [a.example]")})
    assert hosts(half) == {"a": ("a.example",), "b": ("b.example",)}
    assert codes(half) == [("a.yaml", "F011"), ("b.yaml", "R020")]
    assert hosts(half.edited({"a.yaml": file("a")})) == {"a": (), "b": ("a.example",)}


MISSPELT = SPLIT.replace("new: 10%", "nwe: 10%")


def test_misspelt_subset_is_not_taken_once_services_are_known() -> None:
    book = start(a=file("a", SPLIT)).with_services(known("a"))
    edited = book.edited({"a.yaml": file("a", MISSPELT)})
    assert edited.routes[name("a")] is book.routes[name("a")]
    assert [problem.render() for problem in edited.problems] == [
        "a.yaml:4:25: error R003: `nwe` is neither a subset of this file nor a known service of `default`\n"
        "  rules: [{to: {old: 90%, nwe: 10%}}]\n                          ^^^\n  fix: did you mean `new`?"
    ]
    found = edited.with_services(known("a", "nwe"))
    assert found.problems == ()
    assert found.routes[name("a")] != book.routes[name("a")]
    assert found.with_services(known("a")).routes is found.routes  # a service that goes takes no routes with it


def test_unknown_service_in_full_waits_too_unless_nothing_goes_there() -> None:
    book = start(a=file("a")).with_services(known(a="1"))
    warm = book.edited({"a.yaml": file("a", "rules: [{to: {a: 100%, b.default:80: 0%}}]")})
    assert warm.problems == ()
    waiting = book.edited({"a.yaml": file("a", "rules: [{to: {a: 50%, b.default:80: 50%}}]")})
    assert waiting.routes[name("a")] is book.routes[name("a")]
    assert [problem.render() for problem in waiting.problems] == [
        "a.yaml:3:23: error R030: the service `b.default` has not been discovered, and rule `rule-1` gives it 50%; "
        "the edit is taken as soon as there is such an endpoint\n"
        "  rules: [{to: {a: 50%, b.default:80: 50%}}]\n                        ^^^^^^^^^^^^"
    ]
    assert waiting.with_services(known("b", a="1")).problems == ()


LABELS = "subsets: {old: {v: '1'}, new: {v: '2'}}\nrules: [{name: main, to: {old: 95%, new: 5%}}]\n"


class TestRequestsToNobody:
    """A live edit that would send requests to no endpoint changes nothing until there is one."""

    @pytest.fixture
    def book(self) -> RouteBook:
        return start(a=file("a", LABELS)).with_services(known(a="12"))

    def test_misspelt_label_is_refused_with_what_was_meant_and_waits(self, book: RouteBook) -> None:
        edited = book.edited({"a.yaml": file("a", LABELS.replace("'1'", "'11'"))})
        assert edited.routes[name("a")] is book.routes[name("a")]
        assert edited.stale == ("a.yaml",)
        assert [problem.render() for problem in edited.problems] == [
            "a.yaml:3:16: error R030: no endpoint of `a.default` has the labels of `old` (v: 11), and rule `main` "
            "gives it 95%; the edit is taken as soon as there is such an endpoint "
            "(`swashplate explain service a.default` lists what is left out of it)\n"
            "  subsets: {old: {v: '11'}, new: {v: '2'}}\n                 ^^^^^^^^^\n"
            "  fix: did you mean `v: 1`? endpoints have `v`: 1, 2 (`new`)"
        ]
        there = dict(known(a="12"))
        there[name("a")] = Service(
            name("a"), (Port("http", 80, endpoints=(Endpoint("10.0.0.1", 80, labels=frozenset({("v", "11")})),)),)
        )
        taken = edited.with_services(there)
        assert (taken.problems, taken.stale) == ((), ())
        assert taken.routes[name("a")] != book.routes[name("a")]

    def test_a_corrected_edit_is_taken_at_once(self, book: RouteBook) -> None:
        edited = book.edited({"a.yaml": file("a", LABELS.replace("'1'", "'11'"))})
        mended = edited.edited({"a.yaml": file("a", LABELS.replace("95%", "94%").replace("5%}", "6%}"))})
        assert (mended.problems, mended.stale) == ((), ())

    @pytest.mark.parametrize(
        "more",
        [
            LABELS.replace("95%", "100%").replace(" 5%", " 0%").replace("'2'", "'3'"),
            LABELS.replace("new: {v: '2'}", "new: {v: '2'}, unused: {w: '1'}"),
            LABELS + "hosts: [a.example]\n",
        ],
        ids=["a share of 0%", "an unused subset", "something else"],
    )
    def test_what_gets_no_requests_may_be_empty(self, book: RouteBook, more: str) -> None:
        assert book.edited({"a.yaml": file("a", more)}).stale == ()

    def test_endpoints_that_go_away_later_undo_nothing_and_hold_no_edit_up(self, book: RouteBook) -> None:
        gone = book.with_services(known(a="1"))
        assert gone.routes is book.routes
        less = LABELS.replace("95%", "96%").replace(" 5%", " 4%") + "hosts: [a.example]\n"
        assert gone.edited({"a.yaml": file("a", less)}).stale == ()
        more = LABELS.replace("95%", "94%").replace(" 5%", " 6%")
        assert codes(gone.edited({"a.yaml": file("a", more)})) == [("a.yaml", "R030")]
        other_rule = LABELS.replace("rules: [", "rules: [{match: [{path: /x}], to: new}, ")
        assert codes(gone.edited({"a.yaml": file("a", other_rule)})) == [("a.yaml", "R030")]

    def test_a_service_without_any_endpoint_holds_no_edit_up(self, book: RouteBook) -> None:
        none = book.with_services(known("a"))
        assert none.edited({"a.yaml": file("a", LABELS.replace("'1'", "'11'"))}).stale == ()

    @pytest.mark.parametrize(
        ("more", "said", "fix"),
        [
            ("port: htpt\n" + LABELS, "the service `a.default` has no port `htpt`", "its ports are `http` (80)"),
            ("rules: [{to: 'a:81'}]", "the service `a.default` has no port `81`", "its ports are `http` (80)"),
            ("rules: [{to: b.defualt}]", "the service `b.defualt` has not", "did you mean `b.default`?"),
            ("port: 81", "the service `a.default` has no port `81`", "its ports are `http` (80)"),
        ],
    )
    def test_misspelt_ports_and_services_too(self, book: RouteBook, more: str, said: str, fix: str) -> None:
        edited = book.with_services(known("b", a="12")).edited({"a.yaml": file("a", more)})
        assert edited.routes[name("a")] is book.routes[name("a")]
        (problem,) = edited.problems
        assert (problem.code, problem.fix) == ("R030", fix)
        assert problem.message.startswith(said)

    def test_without_an_earlier_version_it_is_in_force_with_a_warning(self) -> None:
        services = known(a="1")
        book = RouteBook().with_services(services).compared({"a.yaml": file("a", LABELS)})
        assert (hosts(book), book.problems) == ({"a": ()}, ())
        (warning,) = book.against(services)
        assert (warning.code, str(warning.severity)) == ("R030", "warning")
        (error,) = book.against(services, strict=True)
        assert (error.code, error.is_error) == ("R030", True)

    def test_an_edit_during_a_restart_is_held_to_it_too(self) -> None:
        seeded = RouteBook.seeded({"a.yaml": file("a", LABELS).decode()}).with_services(known(a="12"))
        read = seeded.compared({"a.yaml": file("a", LABELS.replace("'1'", "'11'"))})
        assert dict(read.routes) == dict(seeded.routes)
        assert codes(read) == [("a.yaml", "R030")]


class TestServiceGivenUp:
    """A file that stops describing a service which is there, for one that is not, is most likely misspelt."""

    def test_misspelt_service_is_refused_and_waits(self) -> None:
        book = start(shop=file("shop", SPLIT)).with_services(known("shop", "web"))
        edited = book.edited({"shop.yaml": file("shp", SPLIT)})
        assert dict(edited.routes) == dict(book.routes)
        assert [problem.render() for problem in edited.problems] == [
            "shop.yaml:2:10: error R031: the file described `shop.default`, which is there, and `shp.default` is "
            "not; the edit is taken as soon as it is\n  service: shp\n           ^^^\n  fix: did you mean `shop`?"
        ]
        assert sources(edited.with_services(known("shop", "shp"))) == {"shp": "shop.yaml"}
        assert sources(edited.with_services(known("web"))) == {"shp": "shop.yaml"}, "nothing is lost any more"

    @pytest.mark.parametrize(
        ("written", "fix"),
        [
            ("service: shop\n", "write `namespace: team`"),
            ("service: shop.team\n", "write `service: shop` and `namespace: team`"),
        ],
    )
    def test_a_lost_namespace_is_asked_for(self, written: str, fix: str) -> None:
        there = Service(ServiceName("team", "shop"))
        good = file("shop", SPLIT).replace(b"service: shop\n", b"service: shop\nnamespace: team\n")
        book = start(shop=good).with_services({there.name: there})
        edited = book.edited({"shop.yaml": good.replace(b"service: shop\nnamespace: team\n", written.encode())})
        assert [(problem.code, problem.fix) for problem in edited.problems] == [("R031", fix)]

    def test_a_change_to_a_known_service_is_obeyed(self) -> None:
        book = start(a=file("a")).with_services(known("a", "b"))
        assert sources(book.edited({"a.yaml": file("b")})) == {"b": "a.yaml"}

    def test_a_change_of_a_file_for_nobody_is_obeyed(self) -> None:
        book = start(a=file("a")).with_services(known("b"))
        assert sources(book.edited({"a.yaml": file("x")})) == {"x": "a.yaml"}

    def test_the_service_may_go_to_another_file(self) -> None:
        book = start(a=file("a")).with_services(known("a"))
        moved = book.edited({"a.yaml": file("x"), "b.yaml": file("a")})
        assert sources(moved) == {"a": "b.yaml", "x": "a.yaml"}
        first = book.edited({"b.yaml": file("a")})
        assert codes(first) == [("b.yaml", "R021")]
        assert sources(first.edited({"a.yaml": file("x")})) == {"a": "b.yaml", "x": "a.yaml"}


def test_unknown_destination_of_a_new_file_is_reported_and_in_force() -> None:
    book = RouteBook().with_services(known("a")).compared({"a.yaml": file("a", MISSPELT)})
    assert codes(book) == [("a.yaml", "R003")]
    assert hosts(book) == {"a": ()}


def stored() -> dict[str, str]:
    return {
        "a.yaml": file("a", "hosts: [a.example]").decode(),
        "b.yaml": file("b").decode(),
        "c.yaml": file("c").decode(),
        "gone.yaml": "version: 0",
    }


def test_restart_serves_what_was_stored_and_takes_only_good_files() -> None:
    seeded = RouteBook.seeded(stored())
    assert hosts(seeded) == {"a": ("a.example",), "b": (), "c": ()}
    assert seeded.stale == ("a.yaml", "b.yaml", "c.yaml")
    read = seeded.compared(
        {"a.yaml": None, "b.yaml": b"", "c.yaml": file("c", "hosts: [c.example]"), "d.yaml": file("d", "foo: 1")}
    )
    assert hosts(read) == {"a": ("a.example",), "b": (), "c": ("c.example",), "d": "F011"}
    assert read.held == ("a.yaml", "b.yaml")
    assert codes(read) == [("a.yaml", "F014"), ("b.yaml", "F014"), ("d.yaml", "F011")]
    assert hosts(read.confirm(["a.yaml"])) == {"b": (), "c": ("c.example",), "d": "F011"}
    assert hosts(read.edited({"b.yaml": None})) == {"a": ("a.example",), "c": ("c.example",), "d": "F011"}


def test_file_renamed_while_nobody_watched_is_not_held() -> None:
    seeded = RouteBook.seeded({"a.yaml": file("a").decode()})
    read = seeded.compared({"a.yaml": None, "new/a.yaml": file("a", "hosts: [a.example]")})
    assert (hosts(read), read.held, read.problems) == ({"a": ("a.example",)}, (), ())
    assert read.good_texts.keys() == {"new/a.yaml"}


def test_namespaces_are_apart() -> None:
    book = RouteBook(Scope("shop")).edited({"a.yaml": file("a"), "b.yaml": file("a", "namespace: other")})
    assert sorted(str(service) for service in book.routes) == ["a.other", "a.shop"]


def test_editing_one_of_a_thousand_files_reads_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    book = RouteBook().edited({f"{n}.yaml": file(f"s{n}", f"hosts: [h{n}.example]") for n in range(1000)})
    read: list[str] = []

    def counting(content: Content, path: str, scope: Scope) -> Parsed:
        read.append(path)
        return parse(content, path, scope)

    monkeypatch.setattr(book_module, "parse", counting)
    after = book.edited({"500.yaml": file("s500", "hosts: [other.example]")})
    assert read == ["500.yaml"]
    assert [service.name for service in after.routes if after.routes[service] is not book.routes[service]] == ["s500"]


def test_a_new_file_that_is_refused_comes_after_what_is_kept() -> None:
    """`b` loses one host to `a`; its other host stays with `c`, which keeps its old version for lack of a service."""
    book = start(c=file("y", "hosts: [h2]"))
    after = book.edited(
        {"c.yaml": file("x"), "a.yaml": file("y", "hosts: [h1]"), "b.yaml": file("x", "hosts: [h1, h2]")}
    )
    assert hosts(after) == {"x": (), "y": ("h1",)}
    assert codes(after) == [("b.yaml", "R021"), ("b.yaml", "R020")]


stems = st.sampled_from(["a", "b", "c"])
contents = st.one_of(
    st.none(),
    st.just(b"{"),
    st.builds(
        lambda service, claimed: file(service, f"hosts: [{', '.join(sorted(claimed))}]" if claimed else ""),
        st.sampled_from(["x", "y"]),
        st.sets(st.sampled_from(["h1", "h2", "h3"])),
    ),
)


@given(st.lists(st.dictionaries(stems, contents, min_size=1), max_size=8))
def test_no_sequence_of_edits_puts_one_host_in_force_twice(edits: list[Mapping[str, bytes | None]]) -> None:
    """Envoy would refuse the whole route table. And what was good in an instant book is good here in the end."""
    book = RouteBook()
    for edit in edits:
        book = book.edited(edit)
        claimed = [
            host for routes in book.routes.values() if isinstance(routes, ServiceRoutes) for host in routes.hosts
        ]
        assert len(claimed) == len(set(claimed))
        assert all(routes.service == service for service, routes in book.routes.items())
    if not book.problems:
        files: dict[str, bytes | None] = {}
        for edit in edits:
            files |= edit
        assert dict(RouteBook().edited(files).routes) == dict(book.routes)
