"""JSON Schema of a kind of operator file, for editors: made from its pydantic model, which validates the files."""

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _OperatorSchema(GenerateJsonSchema):
    """Without what says nothing to an operator: null for absent keys, and titles that repeat the key."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        for keyword, part in (("propertyNames", "keys_schema"), ("additionalProperties", "values_schema")):
            inner = self.generate_inner(schema[part]) if part in schema else {}  # type: ignore[literal-required]
            if "title" in inner:
                made[keyword] = {"title": inner["title"]} | (made.get(keyword) or {})
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """The schema of files that hold one `model`, in dialect 2020-12. It has no null, as files have none."""
    made = model.model_json_schema(schema_generator=_OperatorSchema, ref_template=DEFAULT_REF_TEMPLATE)
    for definition in made.get("$defs", {}).values():
        definition.pop("title", None)
    made.pop("title", None)
    return {"$schema": DIALECT, "title": title, **made}


def schema_text(model: type[BaseModel], title: str) -> str:
    """The schema as the text of its file."""
    return json.dumps(json_schema(model, title), indent=2, ensure_ascii=False) + "\n"
