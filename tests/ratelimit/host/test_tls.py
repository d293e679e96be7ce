"""TLS of a host, whichever it is: who is let in, and certificates that are replaced."""

import os
import shutil
import ssl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from ratelimit.host.choice import Kind
from ratelimit.host.tls import TlsError, TlsFiles
from ratelimit.host.tls_watch import TlsWatch
from tests.e2e.harness.wait import until
from tests.ratelimit.host.both import Site, calling, outcomes

FILES = Path(__file__).parents[2] / "e2e" / "tls"
CODE = grpc.StatusCode


def material(name: str) -> tuple[bytes, bytes]:
    return (FILES / f"{name}.key").read_bytes(), (FILES / f"{name}.pem").read_bytes()


def dial(site: Site, name: str, *, client: bool = False) -> Any:
    """A channel that expects a server of this name."""
    roots = (FILES / "ca.pem").read_bytes() + (FILES / "rotated.pem").read_bytes()
    key, certificate = material("server") if client else (None, None)
    credentials = grpc.ssl_channel_credentials(roots, key, certificate)
    return site.channel(credentials=credentials, options=(("grpc.ssl_target_name_override", name),))


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    for suffix in ("key", "pem"):
        shutil.copy(FILES / f"server.{suffix}", tmp_path / f"tls.{suffix}")
    return TlsFiles(tmp_path / "tls.pem", tmp_path / "tls.key")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
async def secure(kind: Kind, files: TlsFiles, said: list[str]) -> AsyncIterator[Site]:
    site = Site(kind, tls=files, on_tls=said.append)
    site.core.echoes = True
    await site.start()
    yield site
    await site.host.stop(0)


async def test_calls_come_by_tls_and_not_without(secure: Site) -> None:
    async with dial(secure, "secure.internal") as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"
    async with secure.channel() as channel:
        assert await outcomes(calling(channel)(b"x", timeout=20)) == [CODE.UNAVAILABLE]


async def test_who_is_refused_in_the_handshake_is_counted_and_told(kind: Kind, files: TlsFiles) -> None:
    told: list[int] = []
    more: Any = {"on_handshakes_failed": told.append} if kind == "native" else {}
    site = Site(kind, tls=TlsFiles(files.certificates, files.key, FILES / "ca.pem"), **more)
    await site.start()
    for _ in range(2):
        async with dial(site, "secure.internal") as without_a_certificate:
            assert await outcomes(calling(without_a_certificate)(b"x", timeout=20)) == [CODE.UNAVAILABLE]

    async def counted() -> bool:
        return (site.host.counts.handshakes_failed or 0) >= 2

    if kind == "native":
        await until(counted, "both handshakes to be counted: a caller may hear of it before")
        await site.host.stop(0)
        assert sum(told) >= 2
    else:
        assert site.host.counts.handshakes_failed is None
        await site.host.stop(0)


async def test_a_replaced_certificate_is_what_new_connections_get(
    secure: Site, files: TlsFiles, said: list[str]
) -> None:
    async with dial(secure, "secure.internal") as old:
        assert await calling(old)(b"x", timeout=20) == b"x"
        shutil.copy(FILES / "rotated.pem", files.certificates)
        assert secure.host._watch is not None
        secure.host._watch.look()
        assert len(said) == 1
        assert "of" in said[0]
        assert str(files.certificates) in said[0]
        async with dial(secure, "secure.internal") as between:
            assert await calling(between)(b"y", timeout=20) == b"y"
        shutil.copy(FILES / "rotated.key", files.key)
        secure.host._watch.look()
        assert said[1:] == [""]
        async with dial(secure, "rotated.internal") as new:
            assert await calling(new)(b"z", timeout=20) == b"z"
        assert await calling(old)(b"x", timeout=20) == b"x"


async def test_files_that_are_replaced_while_they_are_read_are_read_again(
    secure: Site, files: TlsFiles, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what was checked would not be what is served: a new certificate with the old key."""
    load = ssl.SSLContext.load_cert_chain

    def replaced_just_now(*arguments: Any, **more: Any) -> None:
        shutil.copy(FILES / "rotated.key", files.key)
        load(*arguments, **more)

    shutil.copy(FILES / "rotated.pem", files.certificates)
    assert secure.host._watch is not None
    with monkeypatch.context() as patched:
        patched.setattr(ssl.SSLContext, "load_cert_chain", replaced_just_now)
        secure.host._watch.look()
    assert "are being replaced" in said[0]
    async with dial(secure, "secure.internal") as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"
    secure.host._watch.look()
    assert said[1:] == [""]
    async with dial(secure, "rotated.internal") as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"


def test_at_the_start_half_of_a_replacement_is_waited_for(files: TlsFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(FILES / "rotated.pem", files.certificates)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        shutil.copy(FILES / "rotated.key", files.key)

    monkeypatch.setattr(time, "sleep", wait)
    found = TlsWatch(files, lambda _: None, lambda _: None).first()
    assert (found.key, found.certificates) == material("rotated")
    assert len(waits) == 1


async def test_files_that_are_replaced_while_it_starts_are_taken(kind: Kind, files: TlsFiles) -> None:
    site = Site(kind, tls=files)
    site.core.echoes = True
    assert site.host._watch is not None
    start = site.host._watch.start

    def replaced_just_now() -> None:
        for suffix, file in (("key", files.key), ("pem", files.certificates)):
            shutil.copy(FILES / f"rotated.{suffix}", file)
        start()

    site.host._watch.start = replaced_just_now  # type: ignore[method-assign]
    await site.start()
    site.host._watch.look()
    async with dial(site, "rotated.internal") as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"
    await site.host.stop(0)


async def test_only_callers_with_a_certificate_are_let_in_where_they_are_asked_for_one(
    kind: Kind, files: TlsFiles
) -> None:
    site = Site(kind, tls=TlsFiles(files.certificates, files.key, FILES / "ca.pem"))
    site.core.echoes = True
    await site.start()
    async with dial(site, "secure.internal", client=True) as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"
    async with dial(site, "secure.internal") as channel:
        assert await outcomes(calling(channel)(b"x", timeout=20)) == [CODE.UNAVAILABLE]
    assert site.core.messages == [b"x"]
    await site.host.stop(0)


async def test_files_that_do_not_go_together_are_told_at_the_start(kind: Kind, files: TlsFiles) -> None:
    shutil.copy(FILES / "rotated.key", files.key)
    site = Site(kind, tls=files)
    with pytest.raises(TlsError, match=str(files.key)):
        await site.host.start()
    await site.host.stop(0)


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _endless(path: Path) -> None:
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("become", [_a_pipe, _a_folder, _endless])
def test_calls_wait_for_no_pipe_and_no_file_without_end(files: TlsFiles, become: Callable[[Path], None]) -> None:
    said: list[str] = []
    watch = TlsWatch(files, lambda _: None, said.append)
    watch.first()
    become(files.key)
    watch.look()
    assert len(said) == 1
    assert str(files.key) in said[0]


async def test_an_encrypted_key_is_told_and_asks_nobody_for_its_password(
    secure: Site, files: TlsFiles, said: list[str]
) -> None:
    text = files.key.read_text().replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
    files.key.write_text(text)
    secure.host._watch.look()  # type: ignore[union-attr]
    assert len(said) == 1
    assert "the key is encrypted" in said[0]
    async with dial(secure, "secure.internal") as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"
