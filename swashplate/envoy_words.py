"""What Envoy says when it refuses something, in fewer words.

It prints the refused message whole, for its own developers (`goo.gle/debugproto`, then text that is hundreds of lines
long), before or behind the reason, and wraps the reason once for each message that it is nested in.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_DUMP_LINES = re.compile(r":?\s*goo\.gle/debug\w+[^\n]*\n(?:(?!: )[^\n]*(?:\n|\Z))*(?:: )?")
_DUMP_LINE = re.compile(r":?\s*goo\.gle/debug\w+[^\n]*?(?=: Proto constraint|$)", re.MULTILINE)
_CONSTRAINT = re.compile(
    r"Proto constraint validation failed \((?P<chain>.*?)\)(?=$|[\n;,]|: (?:type|name)\b)", re.DOTALL
)
_STEP = re.compile(
    r"^(?P<message>\w+?)(?:ValidationError)?\.(?P<field>\w+)(?P<index>\[\d+])?: (?P<rest>.*)$", re.DOTALL
)
_NESTED = "embedded message failed validation"
_LONGEST = 2000


def plain(words: str) -> str:
    """The reason: `Cluster.ConnectTimeout: value must be greater than 0s`. Other words stay as they are."""
    short = _DUMP_LINE.sub("", _DUMP_LINES.sub("", words))
    short = _CONSTRAINT.sub(lambda found: _innermost(found["chain"]), short).strip(" \n:")
    if not short:
        short = " ".join(words.split())
    return short if len(short) <= _LONGEST else f"{short[:_LONGEST]} ..."


def named(words: str, bootstrap: Mapping[str, Any]) -> str | None:
    """The cluster, or the virtual host, of a static bootstrap that the reason is about, if the words tell."""
    static: Mapping[str, Sequence[Mapping[str, Any]]] = bootstrap["static_resources"]
    for step in _steps(words):
        if step.field == "Clusters" and step.place is not None and step.place < len(static["clusters"]):
            return str(static["clusters"][step.place]["name"])
        if step.field == "VirtualHosts" and step.place is not None:
            tables = [table for table in _tables(static["listeners"]) if "virtual_hosts" in table]
            hosts: list[Sequence[Mapping[str, Any]]] = [table["virtual_hosts"] for table in tables]
            longest = max(hosts, key=len, default=[])
            return str(longest[step.place]["name"]) if step.place < len(longest) else None
    return None


class _Step(NamedTuple):
    message: str
    field: str
    place: int | None
    rest: str


def _steps(words: str) -> Iterator[_Step]:
    """From the outermost message to the innermost, as the words say where in them the reason is."""
    if (found := _CONSTRAINT.search(words)) is None:
        return
    for part in found["chain"].split(" | caused by "):
        if (step := _STEP.match(part)) is not None:
            index = step["index"]
            yield _Step(step["message"], step["field"], int(index[1:-1]) if index else None, step["rest"])


def _innermost(chain: str) -> str:
    last = chain.split(" | caused by ")[-1]
    if (step := _STEP.match(last)) is None or step["rest"] == _NESTED:
        return last
    return f"{step['message']}.{step['field']}{step['index'] or ''}: {step['rest']}"


def _tables(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every route table in these listeners."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "route_config":
                yield item
            else:
                yield from _tables(item)
    elif isinstance(value, list):
        for item in value:
            yield from _tables(item)
