"""One limit file: text to plain values, or every problem it has."""

from collections.abc import Mapping
from typing import Final

from operator_files import codes as file_codes
from operator_files import yaml
from operator_files.last_good import Reading
from operator_files.problem import Problem, has_errors, in_order
from operator_files.validate import examine
from operator_files.yaml import Document
from ratelimit.limits import accepted, codes
from ratelimit.limits.checks import problems_of
from ratelimit.limits.convert import descriptors_of
from ratelimit.limits.descriptor import DomainFile
from ratelimit.limits.model import LimitFile
from ratelimit.limits.names import Names

Content = bytes | str | OSError
MAX_BYTES: Final = 16 * 1024 * 1024


def parse(content: Content, path: str, *, shared_keys: bool = False) -> Reading[DomainFile]:
    """What a file says; never raises for it. `path` is the name that problems show.

    `shared_keys`: what envoyproxy/ratelimit has no like of is an error, because counters are shared with one.
    """
    if isinstance(content, OSError):
        reason = content.strerror or str(content)
        problem = Problem(
            file_codes.UNREADABLE.id, f"the file cannot be read: {reason[:1].lower()}{reason[1:]}", path
        )
        return Reading("", None, (problem,))
    # Until the document is gone: looking through its million objects would hold up all calls, whatever the thread.
    with yaml.collector_paused():
        return _parsed(content, path, shared_keys)


def _parsed(content: bytes | str, path: str, shared_keys: bool) -> Reading[DomainFile]:
    document = yaml.parse(content, path, max_bytes=MAX_BYTES, merge_keys=True)
    if isinstance(document, Problem):
        return Reading(content if isinstance(content, str) else content.decode(errors="replace"), None, (document,))
    return _read(document, shared_keys)


def parse_data(data: Mapping[str, object], path: str, *, shared_keys: bool = False) -> Reading[DomainFile]:
    """As `parse`, of data in the form of a file: what other parts of the program make of their own configuration.
    Problems have no lines."""
    return _read(Document(path, "", dict(data)), shared_keys)


def _read(document: Document, shared_keys: bool) -> Reading[DomainFile]:
    if _is_route_file(document.data):
        problem = document.problem(
            codes.ROUTE_FILE,
            "this is a route file, and no limit file",
            ("service",),
            fix="check it with `swashplate check FILE`; its limits are served by `swashplate serve`, or by "
            "`swashplate ratelimit serve --routes DIRECTORY`",
            key=True,
        )
        return Reading(document.text, None, (problem,))
    warnings = accepted.take(document)
    file, problems, _ = examine(LimitFile, document)
    problems = in_order((*warnings, *problems, *problems_of(document, shared_keys=shared_keys)))
    if file is None or has_errors(problems):
        return Reading(document.text, None, problems)
    names = Names(document)
    value = DomainFile(file.domain, descriptors_of(file, document), names.wanted())
    return Reading(document.text, value, in_order((*problems, *names.twice())))


def _is_route_file(data: object) -> bool:
    return isinstance(data, dict) and "service" in data and not {"domain", "descriptors"} & data.keys()
