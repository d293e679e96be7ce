"""The reference of a kind of operator file as Markdown: from its JSON Schema, so that it is never out of date."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from operator_files.problem import Code

Schema = Mapping[str, Any]

_DEFS = "#/$defs/"


def keys_sections(schema: Schema, root: str) -> str:
    """A section with a table of keys for every mapping of the format, in the order in which they are met.

    `root` is the heading of the outermost one; the others are headed by where they first stand (`rules[].retry`).
    """
    places = _places(schema)
    sections = [_section(root, schema, places)]
    sections += [_section(f"`{place}`", schema["$defs"][name], places) for name, place in places.items()]
    return "\n".join(sections)


def codes_section(codes: Iterable[Code]) -> str:
    """A table of problem codes."""
    rows = "".join(f"| `{code.id}` | {_cell(code.meaning)} |\n" for code in codes)
    return f"| code | what it means |\n| --- | --- |\n{rows}"


def _places(schema: Schema) -> dict[str, str]:
    """Every definition that is a mapping with keys of its own, and the first place where it stands."""
    places: dict[str, str] = {}

    def visit(place: str, found: Schema) -> None:
        for key, value in found.get("properties", {}).items():
            for suffix, name in _references(value):
                if name not in places and schema["$defs"][name].get("properties"):
                    places[name] = f"{place}.{key}{suffix}".lstrip(".")
                    visit(places[name], schema["$defs"][name])

    visit("", schema)
    return places


def _references(schema: Schema) -> Iterator[tuple[str, str]]:
    """The definitions that a value may be, each with what has to be added to its key: `[]`, `.NAME`."""
    if "$ref" in schema:
        yield "", schema["$ref"].removeprefix(_DEFS)
    for member in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _references(member)
    if isinstance(items := schema.get("items"), Mapping):
        for suffix, name in _references(items):
            yield f"[]{suffix}", name
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        for suffix, name in _references(values):
            yield f".NAME{suffix}", name


def _section(heading: str, schema: Schema, places: Mapping[str, str]) -> str:
    required = schema.get("required", ())
    rows = [
        f"| `{key}`{' (required)' if key in required else ''} | {_cell(_kind(value, places))} | {_meaning(value)} |"
        for key, value in schema.get("properties", {}).items()
    ]
    about = " ".join(schema.get("description", "").split())
    return "\n".join([f"## {heading}\n", f"{about}\n", "| key | value | meaning |", "| --- | --- | --- |", *rows, ""])


def _meaning(schema: Schema) -> str:
    text = str(schema.get("description", ""))
    if "default" in schema:
        default = schema["default"]
        shown = default if isinstance(default, str) else json.dumps(default)
        if shown not in ("", "[]", "{}"):
            text += f" Default: `{shown}`."
    return _cell(text)


def _kind(schema: Schema, places: Mapping[str, str]) -> str:
    """What may be written, in words."""
    if "title" in schema:
        return str(schema["title"])
    if "$ref" in schema:
        place = places.get(schema["$ref"].removeprefix(_DEFS))
        return f"[mapping](#{_anchor(place)})" if place else "mapping"
    if members := (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        return " or ".join(dict.fromkeys(_kind(member, places) for member in members))
    if "const" in schema:
        return f"`{json.dumps(schema['const']) if not isinstance(schema['const'], str) else schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_plural(_kind(schema['items'], places))}"
    if schema.get("type") == "object":
        return _mapping_kind(schema, places)
    words = {"string": "text", "integer": "number", "number": "number", "boolean": "`true` or `false`"}
    word = words.get(str(schema.get("type")), "any value")
    if "minimum" in schema and "maximum" in schema:
        word += f", {schema['minimum']} to {schema['maximum']}"
    return word


def _mapping_kind(schema: Schema, places: Mapping[str, str]) -> str:
    values = schema.get("additionalProperties")
    if not isinstance(values, Mapping):
        return "mapping"
    keys = schema.get("propertyNames", {}).get("title", "name")
    return f"mapping of {_plural(keys)} to {_plural(_kind(values, places))}"


def _plural(words: str) -> str:
    if words.startswith("mapping of "):
        return words.replace("mapping", "mappings", 1)
    if words.endswith("y") and not words.endswith("ey"):
        return words[:-1] + "ies"
    return words + "s" if words[-1:].isalpha() and words != "text" else words


def _anchor(place: str) -> str:
    """As GitHub makes it from the heading."""
    return "".join(char for char in place.lower() if char.isalnum() or char in "-_")


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
