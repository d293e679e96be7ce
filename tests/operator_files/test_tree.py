"""Listing and reading operator files: which are read, when, and what cannot be read is never taken for gone."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from operator_files import tree as tree_module
from operator_files.folder import Content
from operator_files.tree import Tree, read_all


def look(tree: Tree, *, every_file: bool = False) -> dict[str, Content]:
    """Two listings with nothing between them, and what they agree is new."""
    return tree.take(tree.list(), tree.list(), every_file=every_file)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that `Tree` opened."""
    opened: list[str] = []
    real = Tree._read

    def counted(tree: Tree, path: str, at: object) -> object:
        opened.append(path)
        return real(tree, path, at)  # type: ignore[arg-type]

    monkeypatch.setattr(Tree, "_read", counted)
    return opened


def test_files_by_suffix_nested_and_without_dot_names(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml", "c.json", "d.txt", ".e.yaml", "f.yaml~", "g/h.yaml", "g/.i/j.yaml", "k.yaml.bak"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert look(Tree(tmp_path)) == {name: name.encode() for name in ("a.yaml", "b.yml", "c.json", "g/h.yaml")}


def test_only_what_changed_is_read(tmp_path: Path, reads: list[str]) -> None:
    for n in range(100):
        (tmp_path / f"{n:03}.yaml").write_text(str(n))
    tree = Tree(tmp_path)
    assert len(look(tree)) == 100
    reads.clear()
    (tmp_path / "042.yaml").write_text("changed")
    assert look(tree) == {"042.yaml": b"changed"}
    assert reads == ["042.yaml"]


def test_content_that_is_as_before_is_no_news(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("same")
    tree = Tree(tmp_path)
    look(tree)
    os.utime(tmp_path / "a.yaml", (1, 1))
    assert tree.unread(tree.list())
    assert look(tree) == {}
    assert not tree.unread(tree.list())


def test_a_file_that_moves_is_not_read_half_way(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("half")
    (tmp_path / "still.yaml").write_text("whole")
    tree = Tree(tmp_path)
    before = tree.list()
    with open(tmp_path / "a.yaml", "a") as file:
        file.write(" and whole")
    now = tree.list()
    assert tree.take(before, now) == {"still.yaml": b"whole"}
    assert tree.take(now, tree.list()) == {"a.yaml": b"half and whole"}


def test_a_file_that_is_renamed_and_still_being_written_is_not_gone(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("old")
    tree = Tree(tmp_path)
    look(tree)
    (tmp_path / "a.yaml").rename(tmp_path / "b.yaml")
    before = tree.list()
    (tmp_path / "b.yaml").write_text("new")
    now = tree.list()
    assert tree.take(before, now, patient=True) == {}
    assert tree.unread(now)
    assert tree.take(now, tree.list(), patient=True) == {"a.yaml": None, "b.yaml": b"new"}


def test_what_is_gone_does_not_wait_for_a_new_file_that_never_rests(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("old")
    tree = Tree(tmp_path)
    look(tree)
    (tmp_path / "a.yaml").unlink()
    before, told = tree.list(), []
    for size in range(1, 40):
        (tmp_path / "grows.yaml").write_text("x" * size)
        now = tree.list()
        told.append(tree.take(before, now, patient=True))
        before = now
    assert [size for size, news in enumerate(told) if news] == [30]
    assert told[30] == {"a.yaml": None}


def test_what_an_earlier_life_had_is_told_as_gone_at_once(tmp_path: Path) -> None:
    tree, before = Tree(tmp_path, known=["a.yaml"]), Tree(tmp_path).list()
    (tmp_path / "b.yaml").write_text("new")
    assert tree.take(before, tree.list()) == {"a.yaml": None}


def test_a_rename_over_it_with_the_old_times_and_size_is_seen(tmp_path: Path) -> None:
    path, new = tmp_path / "a.yaml", tmp_path / "a.new"
    path.write_text("weight: 1")
    tree = Tree(tmp_path)
    look(tree)
    new.write_text("weight: 2")
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    os.utime(new, ns=times)
    new.rename(path)
    assert look(tree) == {"a.yaml": b"weight: 2"}


def test_every_file_finds_what_times_do_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("old")
    tree = Tree(tmp_path)
    look(tree)
    with open(tmp_path / "a.yaml", "r+") as file:
        file.write("new")
    # As on a file system that keeps no times worth the name: the same size and times as before.
    tree._seen["a.yaml"] = tree._seen["a.yaml"]._replace(at=tree.list().files["a.yaml"])
    assert look(tree) == {}
    assert look(tree, every_file=True) == {"a.yaml": b"new"}
    assert look(tree, every_file=True) == {}


def test_known_files_that_are_missing_are_told_as_gone_once(tmp_path: Path) -> None:
    (tmp_path / "here.yaml").write_text("x")
    tree = Tree(tmp_path, known=["here.yaml", "lost.yaml"])
    assert look(tree) == {"here.yaml": b"x", "lost.yaml": None}
    assert look(tree) == {}


def test_a_missing_root_says_nothing_about_files(tmp_path: Path) -> None:
    root = tmp_path / "routes"
    root.mkdir()
    (root / "a.yaml").write_text("x")
    tree = Tree(root)
    look(tree)
    root.rename(tmp_path / "away")
    listing = tree.list()
    assert listing.error is not None
    assert look(tree) == {}
    assert not tree.unread(listing)


def test_a_root_that_is_a_file_has_an_empty_key_and_any_name(tmp_path: Path) -> None:
    root = tmp_path / "services.conf"
    root.write_text("x")
    (tmp_path / "other.yaml").write_text("not ours")
    assert look(Tree(root)) == {"": b"x"}


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


@pytest.mark.parametrize("make", [_dangling, _loop, _pipe, _socket])
def test_what_cannot_be_read_is_an_error_of_that_file_alone(tmp_path: Path, make: object) -> None:
    (tmp_path / "a.yaml").write_text("good")
    make(tmp_path / "bad.yaml")  # type: ignore[operator]
    news = look(tree := Tree(tmp_path))
    assert news["a.yaml"] == b"good"
    assert isinstance(news["bad.yaml"], OSError)
    assert look(tree) == {}, "told once"


def test_a_file_that_is_not_of_the_size_it_says_is_an_error(tmp_path: Path) -> None:
    assert os.stat("/proc/self/status").st_size == 0
    (tmp_path / "a.yaml").symlink_to("/proc/self/status")
    error = look(Tree(tmp_path))["a.yaml"]
    assert isinstance(error, OSError)
    assert error.strerror == "is not of the size it says"


def test_read_all_does_not_wait_for_ever_for_a_file_that_never_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text("x")
    (tmp_path / "rests.yaml").write_text("y")
    real = Tree._read

    def written_meanwhile(tree: Tree, path: str, at: object) -> object:
        if path == "a.yaml":
            with open(tmp_path / path, "a") as file:
                file.write("x")
        return real(tree, path, at)  # type: ignore[arg-type]

    monkeypatch.setattr(Tree, "_read", written_meanwhile)
    monkeypatch.setattr(tree_module, "_TRY_AGAIN_S", 0.0)
    found = read_all(tmp_path)
    assert found[str(tmp_path / "rests.yaml")] == b"y"
    assert isinstance(error := found[str(tmp_path / "a.yaml")], OSError)
    assert error.strerror == "changes all the time"


def test_a_file_too_large_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x" * 11)
    error = look(Tree(tmp_path, max_bytes=10))["a.yaml"]
    assert isinstance(error, OSError)
    assert error.strerror == "is larger than 10 bytes"


def test_files_in_a_directory_that_cannot_be_listed_are_in_error_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("x")
    tree = Tree(tmp_path)
    look(tree)
    real = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if path.endswith("sub"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        (error,) = look(tree).values()
        assert isinstance(error, PermissionError)
    assert look(tree) == {"sub/a.yaml": b"x"}, "told again when it can be read again"


def test_a_symlink_to_a_directory_above_ends(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("x")
    (tmp_path / "sub" / "up").symlink_to("..")
    assert look(Tree(tmp_path)) == {"sub/a.yaml": b"x"}


def test_a_name_that_is_not_utf8_is_an_error_of_that_file_alone(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.yaml"))
    below = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff/b.yaml"))
    below.parent.mkdir()
    for path in (odd, below, tmp_path / "a.yaml", tmp_path / "caf\u00e9.yaml"):
        path.write_text("x")
    news = look(tree := Tree(tmp_path))
    assert news.keys() == {"a.yaml", "caf\u00e9.yaml", "caf\\xe9.yaml", "d\\xff/b.yaml"}
    for key in ("caf\\xe9.yaml", "d\\xff/b.yaml"):
        assert isinstance(error := news[key], OSError)
        assert error.strerror == "its name is not UTF-8"
    assert all(path.isprintable() for path in tree.list().watched), "what watchfiles can take"
    odd.unlink()
    assert look(tree) == {"caf\\xe9.yaml": None}


def test_a_path_with_far_too_much_below_is_an_error_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "MAX_DIRECTORIES", 4)
    (tmp_path / "a.yaml").write_text("x")
    tree = Tree(tmp_path)
    look(tree)
    for n in range(4):
        (tmp_path / str(n)).mkdir()
    listing = tree.list()
    assert listing.error is not None
    assert "more than 4 directories" in listing.error.reason
    assert look(tree) == {}, "nothing is taken for gone"
    (tmp_path / "0").rmdir()
    assert tree.list().error is None


def test_read_all_has_files_by_their_own_path(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("x")
    (tmp_path / "one.yaml").write_text("y")
    assert read_all(tmp_path) == {str(tmp_path / "sub/a.yaml"): b"x", str(tmp_path / "one.yaml"): b"y"}
    assert read_all(tmp_path / "one.yaml") == {str(tmp_path / "one.yaml"): b"y"}
    with pytest.raises(FileNotFoundError):
        read_all(tmp_path / "none")
