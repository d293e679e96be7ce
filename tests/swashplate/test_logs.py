"""Logs: JSON lines where a machine reads them, levels, and the libraries' own lines in the same form."""

import json
import logging
from collections.abc import Iterator
from io import StringIO

import pytest
import structlog

from swashplate import logs


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_off_a_terminal_each_event_is_a_json_line() -> None:
    out = StringIO()
    logs.configure("info", "auto", out)
    structlog.get_logger().info("pushed", type="CDS", seconds=0.5)
    structlog.get_logger().debug("not this one")
    line = json.loads(out.getvalue())
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "pushed", "type": "CDS", "seconds": 0.5, "level": "info"}


def test_an_exception_is_inside_its_line() -> None:
    out = StringIO()
    logs.configure("info", "json", out)
    try:
        raise ValueError("boom")
    except ValueError:
        structlog.get_logger().exception("failed")
    assert "ValueError: boom" in json.loads(out.getvalue())["exception"]


@pytest.mark.parametrize(
    ("style", "stream", "coloured"), [("auto", Terminal(), True), ("console", StringIO(), False)]
)
def test_for_people(style: logs.Format, stream: StringIO, coloured: bool) -> None:
    logs.configure("info", style, stream)
    structlog.get_logger().info("pushed", type="CDS")
    assert "pushed" in stream.getvalue()
    assert ("\x1b[" in stream.getvalue()) is coloured


@pytest.mark.parametrize("style", ["console", "json"])
def test_keys_stay_in_the_order_they_were_given(style: logs.Format) -> None:
    out = StringIO()
    logs.configure("info", style, out)
    structlog.get_logger().bind(source="z").info("published", services="y", changed="x")
    said = out.getvalue()
    assert said.index("source") < said.index("services") < said.index("changed")


def test_libraries_log_in_the_same_form() -> None:
    out = StringIO()
    logs.configure("info", "json", out)
    logging.getLogger("aiohttp.server").error("Error handling %s", "request")
    logging.getLogger("aiohttp.access").info("GET /healthz")
    line = json.loads(out.getvalue())
    assert line["event"] == "Error handling request"
    assert line["level"] == "error"


def test_on_a_terminal_what_others_wrote_does_not_steer_it() -> None:
    out = StringIO()
    logs.configure("info", "console", out)
    log = structlog.get_logger()
    log.warning("refused", node="a\x1b[2J", message="x\nforged \x9b", names=["\x1b"])
    logging.getLogger("aiohttp.server").error("Error handling %s", "\x1b[31mrequest\nforged")
    try:
        raise ValueError("boom\x1b[2J")
    except ValueError:
        log.exception("failed")
    said = out.getvalue()
    assert "\x1b" not in said
    assert "\x9b" not in said
    assert r"a\x1b[2J" in said
    assert not any(line.startswith("forged") for line in said.splitlines())
    assert r"ValueError: boom\x1b[2J" in said
    assert "\nTraceback" in said, "a traceback keeps its lines"
