"""Structured logs: one line for each meaningful event, for people on a terminal, as JSON anywhere else."""

import logging
import sys
from collections.abc import Sequence
from io import StringIO
from typing import Literal, TextIO

import structlog
from structlog.types import EventDict, ExcInfo, Processor

from swashplate.outside_text import escaped

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "console", "json"]

_SHARED: Sequence[Processor] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure(level: Level, style: Format, stream: TextIO = sys.stderr) -> None:
    """Send every log line of this process to `stream`, those of the libraries too.

    `auto` is `console` where `stream` is a terminal, else `json`.
    """
    console = style == "console" or (style == "auto" and stream.isatty())
    renderer: tuple[Processor, ...] = (
        (
            _harmless,
            structlog.dev.ConsoleRenderer(colors=stream.isatty(), sort_keys=False, exception_formatter=_traceback),
        )
        if console
        else (structlog.processors.format_exc_info, _in_order, structlog.processors.JSONRenderer())
    )
    structlog.configure(
        processors=[*_SHARED, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    # What the libraries say at INFO (every admin request) is of no use to an operator.
    root.setLevel(logging.DEBUG if level == "debug" else logging.WARNING)


def _harmless(_: object, __: str, event: EventDict) -> EventDict:
    """Much of what is logged was written by whoever reaches a port; JSON and `repr` escape it of themselves."""
    # Values other than text are written with repr, tracebacks and stacks have lines of their own.
    own_lines = ("exception", "stack")
    return {
        key: escaped(value, lines=key in own_lines) if isinstance(value, str) else value
        for key, value in event.items()
    }


def _traceback(out: TextIO, exc_info: ExcInfo) -> None:
    written = StringIO()
    structlog.dev.plain_traceback(written, exc_info)
    out.write(escaped(written.getvalue(), lines=True))


def _in_order(_: object, __: str, event: EventDict) -> EventDict:
    """What every line has comes first, so that lines can be read as they scroll by."""
    return {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event} | dict(event)
