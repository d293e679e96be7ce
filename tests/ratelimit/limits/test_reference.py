"""The JSON Schema and the reference are those of the model, and tell everything that the model knows."""

import json

from operator_files.schema import schema_text
from ratelimit.limits.codes import CODES
from ratelimit.limits.model import LimitFile
from ratelimit.limits.reference import PAGE, SCHEMA, TITLE, page

WRITE = "run `python -m ratelimit.limits.reference`"


def test_schema_is_current() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(LimitFile, TITLE), WRITE


def test_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), WRITE


def test_every_key_is_explained() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    mappings = [schema, *schema["$defs"].values()]
    keys = [(key, value) for found in mappings for key, value in found.get("properties", {}).items()]
    assert [key for key, value in keys if not value.get("description")] == []
    assert all(found.get("additionalProperties") is False for found in mappings if "properties" in found)


def test_codes_are_unique_and_on_the_page() -> None:
    ids = [code.id for code in CODES]
    assert len(ids) == len(set(ids))
    assert all(f"| `{code}` |" in page() for code in ids)
