"""schema/services.v1.json and docs/reference/service-files.md, written from the models:
`python -m discovery.files.reference`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from discovery.files.codes import CODES
from discovery.files.model import (
    EndpointSpec,
    PortSpec,
    RotorCluster,
    RotorFile,
    RotorInstance,
    RotorMetadata,
    ServiceFile,
    ServiceList,
    ServiceSpec,
)

_ROOT: Final = Path(__file__).parent.parent.parent
SCHEMA: Final = _ROOT / "schema" / "services.v1.json"
PAGE: Final = _ROOT / "docs" / "reference" / "service-files.md"

_FORMS: Final[tuple[type[BaseModel], ...]] = (ServiceFile, ServiceList, RotorFile)

_HEAD: Final = """\
# Service files

<!-- Written by `python -m discovery.files.reference` from discovery/files/model.py. -->

`--services PATH` names a file, or a directory of `*.yaml`, `*.yml` and `*.json` files (nested ones too; names that
begin with a dot are left out). They say which services there are and where their endpoints run, and are followed
while they change: by events, with a rehash every minute where a file system has none.

```yaml
# yaml-language-server: $schema=../schema/services.v1.json
version: 1
services:
- name: inventory                  # one HTTP port, 80, in the default namespace
  endpoints: [10.0.0.1:8080, 10.0.0.2:8080]
- name: checkout
  namespace: shop
  ports:
  - {name: http, number: 80, target: 8080}
  - {name: grpc-admin, number: 9000}
  endpoints:
  - {address: 10.0.1.1, zone: eu-1a, labels: {version: v41}}
  - {address: 10.0.1.2, zone: eu-1b, labels: {version: v42}, weight: 2}
  - {address: 10.0.1.3, ports: {http: 8081}, health: draining}
```

A list of services alone, without `version:` and `services:`, is the same; so is JSON, which is YAML. What Rotor's
file collector reads is read too:

```yaml
- cluster: checkout
  instances:
  - {host: 10.0.1.1, port: 8080, metadata: [{key: version, value: v41}]}
```

## What happens when

* **An edit** is in force at once, down to zero: a service that is deleted, or whose endpoints are, is gone.
* **An edit with an error**, and a file that is empty or cannot be read, changes nothing: the file's last good version
  serves on. So does everything when PATH itself is missing.
* **One service in several files**: their endpoints are put together, where the ports agree by number, name and
  protocol. An edit that contradicts another file is refused, and taken by itself as soon as the other file changes.
* **After a restart with `--state`** the last good version of every file serves from the start. What the files then
  have less than before is *held*: a file that is missing or empty until it is edited or its removal confirmed
  (`swashplate confirm`), a service that a good file does not list any more until it was read once more, 5 seconds
  later. A file whose services are all in new files was renamed, and is not held.
* **An endpoint with a DNS name** makes Envoy resolve the names of its whole port itself.
"""


def schema() -> dict[str, Any]:
    """The JSON Schema of a service file in any of its forms."""
    _, definitions = models_json_schema([(form, "validation") for form in _FORMS], ref_template="#/$defs/{model}")
    mapping, *lists = ({"$ref": f"#/$defs/{form.__name__}"} for form in _FORMS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Swashplate service file, version 1",
        "if": {"type": "object"},
        "then": mapping,
        "else": {"anyOf": lists},
        "$defs": _without_nulls(definitions["$defs"]),
    }


def page() -> str:
    """The reference in Markdown."""
    definitions = schema()["$defs"]
    own = (ServiceFile, ServiceSpec, PortSpec, EndpointSpec)
    rotor = (RotorCluster, RotorInstance, RotorMetadata)
    parts = [_HEAD, "## Keys", *(_table(model, definitions) for model in own)]
    parts += ["## Keys of Rotor's form", *(_table(model, definitions) for model in rotor), "## Problems", _problems()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(model: type[BaseModel], definitions: Mapping[str, Any]) -> str:
    definition = definitions[model.__name__]
    required = definition["required"]
    rows = [
        f"| `{key}`{'' if key in required else ' (optional)'} | {_form(value)} | {value['description']} |"
        for key, value in definition["properties"].items()
    ]
    title = {
        "ServiceFile": "The file",
        "ServiceSpec": "A service",
        "PortSpec": "A port",
        "EndpointSpec": "An endpoint",
        "RotorCluster": "A cluster",
        "RotorInstance": "An instance",
        "RotorMetadata": "A metadata entry",
    }[model.__name__]
    return "\n".join(
        [
            f"### {title}\n",
            definition["description"] + "\n",
            "| key | value | meaning |",
            "| --- | --- | --- |",
            *rows,
        ]
    )


def _form(value: Mapping[str, Any]) -> str:
    if "enum" in value:
        return ", ".join(f"`{word}`" for word in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if value.get("type") == "array":
        return "list"
    if value.get("type") == "object":
        return "mapping"
    return {"integer": "number", "string": "text"}[value["type"]]


def _problems() -> str:
    return "\n".join(["| code | meaning |", "| --- | --- |", *(f"| {code.id} | {code.meaning} |" for code in CODES)])


def _without_nulls(value: Any) -> Any:
    """pydantic's way to say "optional" is a null that may be written; in a file a key is there or not."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_nulls(item) for key, item in value.items() if not (key == "default" and item is None)}
    options = [option for option in kept.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        del kept["anyOf"]
        return {**options[0], **kept}
    return kept


def files() -> Iterator[tuple[Path, str]]:
    """What is written where."""
    yield SCHEMA, json.dumps(schema(), indent=2) + "\n"
    yield PAGE, page()


def main() -> None:
    for path, text in files():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
