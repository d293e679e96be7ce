"""The durable last good: what was saved is there after a crash, one process has it, damage costs the memory only."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from operator_files.store import FILE_NAME, FORMAT, LastGoodStore, StoreError


def test_texts_are_there_in_the_next_life(tmp_path: Path) -> None:
    with LastGoodStore(tmp_path / "new" / "state") as store:
        store.save("routes", {"a.yaml": "one", "b/c.yaml": "zwölf\n", "gone.yaml": "x"})
        store.save("services", {"a.yaml": "another kind"})
        store.save("routes", {"a.yaml": "two", "gone.yaml": None, "never.yaml": None})
    with LastGoodStore(tmp_path / "new" / "state") as store:
        assert store.load("routes") == {"a.yaml": "two", "b/c.yaml": "zwölf\n"}
        assert store.load("services") == {"a.yaml": "another kind"}
        assert store.warnings == ()


def test_what_save_returned_from_survives_a_kill(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys; from operator_files.store import LastGoodStore\n"
        "LastGoodStore(pathlib.Path(sys.argv[1])).save('routes', {'a.yaml': 'kept'})\n"
        "os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert killed.returncode == -9
    with LastGoodStore(tmp_path) as store:
        assert store.load("routes") == {"a.yaml": "kept"}


def test_a_second_process_is_refused_with_a_reason(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys; from operator_files.store import LastGoodStore, StoreError\n"
        "try: LastGoodStore(pathlib.Path(sys.argv[1]))\n"
        "except StoreError as error: print(error)"
    )
    with LastGoodStore(tmp_path):
        second = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True, text=True
        )
    assert second.stdout.strip() == f"state directory {tmp_path} is in use by another process; give each its own"


def test_the_first_user_goes_on_after_a_second_one_was_refused(tmp_path: Path) -> None:
    with LastGoodStore(tmp_path) as store:
        with pytest.raises(StoreError, match="in use"):
            LastGoodStore(tmp_path)
        store.save("routes", {"a.yaml": "still"})
        assert store.load("routes") == {"a.yaml": "still"}


def _saved(tmp_path: Path) -> Path:
    with LastGoodStore(tmp_path) as store:
        store.save("routes", {f"{n}.yaml": "text " * 200 for n in range(50)})
    return tmp_path / FILE_NAME


@pytest.mark.parametrize("damage", ["garbage", "cells", "cut"])
def test_a_damaged_file_is_set_aside_with_a_warning(tmp_path: Path, damage: str) -> None:
    path = _saved(tmp_path)
    content = bytearray(path.read_bytes())
    match damage:
        case "garbage":
            content[:] = b"no database at all " * 500
        case "cells":
            content[4200:8000] = b"\xff" * 3800
        case _:
            del content[6000:]
    path.write_bytes(content)
    with LastGoodStore(tmp_path) as store:
        assert store.load("routes") == {}
        (warning,) = store.warnings
        assert "is damaged" in warning
        store.save("routes", {"a.yaml": "new"})
        assert store.load("routes") == {"a.yaml": "new"}
    assert (tmp_path / "last-good.damaged").read_bytes() == bytes(content)


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreError, match="was not made by this program"):
        LastGoodStore(tmp_path)
    other = sqlite3.connect(path)
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    other.close()


def test_a_newer_format_is_refused_rather_than_misread(tmp_path: Path) -> None:
    database = sqlite3.connect(_saved(tmp_path))
    database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()
    with pytest.raises(StoreError, match=f"has format {FORMAT + 1}, and this version knows format {FORMAT}"):
        LastGoodStore(tmp_path)


def test_a_directory_that_cannot_be_made_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        LastGoodStore(tmp_path / "file" / "state")


def test_a_directory_that_may_not_be_written_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / FILE_NAME).mkdir()  # what SQLite fails on for root too
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == tmp_path and mode & os.W_OK))
    with pytest.raises(StoreError, match=f"{tmp_path} must be readable and writable"):
        LastGoodStore(tmp_path)


def test_saving_nothing_writes_nothing(tmp_path: Path) -> None:
    with LastGoodStore(tmp_path) as store:
        store.save("routes", {"a.yaml": "x"})
        before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
        store.save("routes", {})
        assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_only_the_owner_reads_what_is_kept(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with LastGoodStore(tmp_path) as store:
        store.save("resources", {"secret.yaml": "a key"})
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
