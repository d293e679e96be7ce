"""All service files together: last good per file, services shared by files, contradictions, and restarts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.files import book as book_module
from discovery.files.book import Content, ServiceBook
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from operator_files.problem import Severity

A, B, C = (ServiceName("default", name) for name in "abc")


def text(name: str, *hosts: str, protocol: str = "http1") -> bytes:
    return f"- {{name: {name}, protocol: {protocol}, endpoints: [{', '.join(hosts)}]}}\n".encode()


def service(name: ServiceName, *hosts: str, protocol: Protocol = Protocol.HTTP1) -> Service:
    return Service(name, (Port("", 80, protocol, tuple(Endpoint(host, 80) for host in hosts)),))


def read(**files: bytes) -> ServiceBook:
    return ServiceBook("default").compared({f"{name}.yaml": content for name, content in files.items()})


def headlines(book: ServiceBook) -> list[str]:
    return [problem.headline() for problem in book.problems]


def test_files_together_are_the_services() -> None:
    book = read(x=text("a", "10.0.0.1") + text("b"), y=text("c", "10.0.0.3"))
    assert book.services == {A: service(A, "10.0.0.1"), B: service(B), C: service(C, "10.0.0.3")}
    assert book.problems == book.held == book.stale == ()


def test_an_edit_is_obeyed_down_to_nothing() -> None:
    book = read(x=text("a", "10.0.0.1") + text("b", "10.0.0.2"))
    assert book.edited({"x.yaml": text("b")}).services == {B: service(B)}
    assert book.edited({"x.yaml": b"[]"}).services == {}
    assert book.edited({"x.yaml": None}).services == {}


BROKEN: list[Content] = [b"", b"\n# nothing\n", b"- {name: a", b"- {nmae: a}", b"\xff", PermissionError(13, "denied")]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_edit_changes_nothing_but_the_problems(content: Content) -> None:
    before = read(x=text("a", "10.0.0.1"), y=text("b", "10.0.0.2"))
    after = before.edited({"x.yaml": content})
    assert after.services == before.services
    assert all(after.services[name] is before.services[name] for name in before.services)
    assert after.stale == ("x.yaml",)
    assert {problem.file for problem in after.problems} == {"x.yaml"}
    assert after.good_texts == before.good_texts
    good = after.edited({"x.yaml": text("a", "10.0.0.9")})
    assert good.services[A] == service(A, "10.0.0.9")
    assert good.problems == good.stale == ()


def test_a_file_that_never_was_good_says_nothing() -> None:
    book = read(x=b"- {nmae: a}", y=text("b"))
    assert set(book.services) == {B}
    assert {problem.file for problem in book.problems} == {"x.yaml"}


def test_unchanged_services_keep_their_identity() -> None:
    before = read(x=text("a", "10.0.0.1") + text("b", "10.0.0.2"))
    after = before.edited({"x.yaml": text("a", "10.0.0.1") + text("b", "10.0.0.9")})
    assert after.services[A] is before.services[A]
    assert after.services[B] == service(B, "10.0.0.9")


def test_an_edit_reads_only_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(**{f"f{n}": text(f"s{n}", "10.0.0.1") for n in range(100)})
    parsed: list[str] = []
    real = book_module.parse

    def counted(content: bytes | str | OSError, file: str, *, default_namespace: str) -> object:
        parsed.append(file)
        return real(content, file, default_namespace=default_namespace)

    monkeypatch.setattr(book_module, "parse", counted)
    before.edited({"f7.yaml": text("s7", "10.0.0.2")})
    assert parsed == ["f7.yaml"]


def test_files_may_share_a_service() -> None:
    book = read(x=text("a", "10.0.0.2"), y=text("a", "10.0.0.1"))
    assert book.services == {A: service(A, "10.0.0.1", "10.0.0.2")}
    assert book.problems == ()
    assert book.edited({"x.yaml": None}).services == {A: service(A, "10.0.0.1")}


def test_an_edit_that_contradicts_another_file_is_refused_and_told_where() -> None:
    before = read(x=text("a", "10.0.0.1"), y=text("a", "10.0.0.2") + text("b", "10.0.0.3"))
    after = before.edited({"y.yaml": text("b", "10.0.0.9") + text("a", "10.0.0.2", protocol="grpc")})
    assert after.services == before.services
    assert headlines(after) == [
        "y.yaml:2:10: error S007: the service `a.default` is also in x.yaml, where port 80 speaks http1, not grpc"
    ]


def test_a_new_file_that_contradicts_another_takes_nothing_from_it_whatever_its_name() -> None:
    before = read(y=text("a", "10.0.0.2"))
    after = before.edited({"x.yaml": text("a", "10.0.0.1", protocol="grpc")})
    assert after.services == before.services
    assert headlines(after)[0].startswith("x.yaml:1:10: error S007")


def test_a_refused_edit_is_taken_when_the_other_file_makes_room() -> None:
    refused = read(x=text("a", "10.0.0.1"), y=text("a", "10.0.0.2")).edited(
        {"y.yaml": text("a", "10.0.0.2", protocol="grpc")}
    )
    still = refused.edited({"z.yaml": text("c")})
    assert still.services[A] == service(A, "10.0.0.1", "10.0.0.2")
    taken = still.edited({"x.yaml": None})
    assert taken.services[A] == service(A, "10.0.0.2", protocol=Protocol.GRPC)
    assert taken.problems == taken.stale == ()


def test_a_refused_edit_that_is_taken_back_is_forgotten() -> None:
    before = read(x=text("a", "10.0.0.1"), y=text("a", "10.0.0.2"))
    refused = before.edited({"y.yaml": text("a", "10.0.0.2", protocol="grpc")})
    back = refused.edited({"y.yaml": text("a", "10.0.0.2")})
    assert back.services == before.services
    assert back.problems == ()
    assert back.edited({"x.yaml": None}).services == {A: service(A, "10.0.0.2")}


def test_files_that_change_together_may_change_a_port() -> None:
    before = read(x=text("a", "10.0.0.1"), y=text("a", "10.0.0.2"), z=text("c"))
    new = {f"{path}.yaml": text("a", host, protocol="grpc") for path, host in (("x", "10.0.0.1"), ("y", "10.0.0.2"))}
    together = before.edited(new)
    assert together.services[A] == service(A, "10.0.0.1", "10.0.0.2", protocol=Protocol.GRPC)
    assert together.problems == ()
    with_a_bad_one = before.edited({**new, "z.yaml": text("c") + text("a", "10.0.0.3")})
    assert with_a_bad_one.services == {**together.services, C: service(C)}
    assert {problem.file for problem in with_a_bad_one.problems} == {"z.yaml"}


def test_a_port_moves_from_one_file_to_another_in_one_edit() -> None:
    before = read(x=text("b"), y=text("a", "10.0.0.2"))
    after = before.edited({"x.yaml": text("a", "10.0.0.1", protocol="grpc"), "y.yaml": text("b", "10.0.0.2")})
    assert after.services == {A: service(A, "10.0.0.1", protocol=Protocol.GRPC), B: service(B, "10.0.0.2")}
    assert after.problems == ()


def test_two_new_files_that_contradict_each_other() -> None:
    after = read(w=text("c")).edited({"x.yaml": text("a", "10.0.0.1"), "y.yaml": text("a", protocol="grpc")})
    assert after.services[A] == service(A, "10.0.0.1")
    assert {problem.file for problem in after.problems} == {"y.yaml"}


def test_at_a_start_the_earlier_path_wins_a_port_and_the_later_file_is_in_error() -> None:
    book = read(x=text("a", "10.0.0.1"), y=text("a", "10.0.0.2", protocol="grpc") + text("b", "10.0.0.3"))
    assert book.services == {A: service(A, "10.0.0.1"), B: service(B, "10.0.0.3")}
    (problem,) = book.problems
    assert (problem.where, problem.severity) == ("y.yaml:1:10", Severity.ERROR)
    assert book.edited({"x.yaml": None}).services[A] == service(A, "10.0.0.2", protocol=Protocol.GRPC)
    assert book.edited({"x.yaml": None}).problems == ()


def test_an_endpoint_told_differently_is_a_warning() -> None:
    book = read(x=text("a", "10.0.0.1"), y=b"- {name: a, endpoints: [{address: 10.0.0.1, weight: 2}]}")
    assert book.services == {A: service(A, "10.0.0.1")}
    (problem,) = book.problems
    assert (problem.code, problem.severity, problem.where) == ("S008", Severity.WARNING, "y.yaml:1:10")


STORED = {"x.yaml": text("a", "10.0.0.1").decode(), "y.yaml": text("b", "10.0.0.2").decode()}


def seeded() -> ServiceBook:
    return ServiceBook.seeded(STORED, default_namespace="default")


def test_a_stored_book_serves_and_is_stale_until_read() -> None:
    book = seeded()
    assert book.services == {A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}
    assert book.stale == ("x.yaml", "y.yaml")
    assert book.good_texts == STORED
    read_again = book.compared({path: text.encode() for path, text in STORED.items()})
    assert all(read_again.services[name] is book.services[name] for name in (A, B))
    assert read_again.stale == ()


@pytest.mark.parametrize("content", [None, b"", b"version: 1\nservices: []", b"[]"])
def test_a_file_that_is_missing_or_empty_after_a_restart_is_held(content: Content) -> None:
    book = seeded().compared({"x.yaml": content, "y.yaml": text("b", "10.0.0.9")})
    assert book.services == {A: service(A, "10.0.0.1"), B: service(B, "10.0.0.9")}
    assert book.held == ("x.yaml",)
    assert book.good_texts["x.yaml"] == STORED["x.yaml"]
    assert [problem.code for problem in book.problems] == ["F014"]
    confirmed = book.confirm(["x.yaml", "y.yaml"])
    assert set(confirmed.services) == {B}
    assert confirmed.held == confirmed.problems == ()


def test_a_held_file_ends_with_its_next_edit() -> None:
    held = seeded().compared({"x.yaml": None, "y.yaml": STORED["y.yaml"].encode()})
    assert held.edited({"x.yaml": text("a", "10.0.0.5")}).services[A] == service(A, "10.0.0.5")
    assert held.edited({"x.yaml": text("a", "10.0.0.5")}).held == ()


def test_a_broken_file_after_a_restart_serves_as_before() -> None:
    book = seeded().compared({"x.yaml": b"- {nmae: a}", "y.yaml": STORED["y.yaml"].encode()})
    assert book.services[A] == service(A, "10.0.0.1")
    assert book.stale == ("x.yaml",)
    assert book.held == ()


def test_a_renamed_file_is_not_held() -> None:
    book = seeded().compared({"x.yaml": None, "new.yaml": text("a", "10.0.0.5"), "y.yaml": STORED["y.yaml"].encode()})
    assert book.services[A] == service(A, "10.0.0.5")
    assert book.held == ()


def test_a_text_that_no_longer_reads_well_is_not_served() -> None:
    book = ServiceBook.seeded({"x.yaml": "- {nmae: a}"}, default_namespace="default")
    assert book.services == {}


_paths = st.sampled_from(["x.yaml", "y.yaml", "z.yaml"])
_said = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["10.0.0.1", "10.0.0.2"]), st.sampled_from(["http1", "grpc"])),
    max_size=2,
    unique_by=lambda part: part[0],
)
_contents = _said.map(lambda parts: b"".join(text(*part[:2], protocol=part[2]) for part in parts) or b"[]")
_edits = st.lists(st.dictionaries(_paths, st.none() | _contents | st.just(b"broken"), max_size=3), max_size=6)


@given(_edits)
def test_edits_never_leave_what_the_files_in_force_do_not_say(edits: list[dict[str, Content]]) -> None:
    book = ServiceBook("default")
    for edit in edits:
        book = book.edited(edit)
    again = ServiceBook.seeded(book.good_texts, default_namespace="default")
    assert again.services == book.services, "a restart serves what was served"
    assert set(book.stale) <= {problem.file for problem in book.problems}, "what is not obeyed has a reason"
