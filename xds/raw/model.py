"""The form of a file of resources: what Envoy itself reads from files, and for which nodes it is."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from operator_files.validate import FileModel
from operator_files.values import refused, text_value

Pattern = Annotated[str, BeforeValidator(text_value), Field(min_length=1)]


def _resource_list(value: object) -> object:
    if not isinstance(value, list):
        raise refused("this must be a list of resources", "begin each with `- '@type': type.googleapis.com/...`")
    return value


class NodesSpec(FileModel):
    """Which nodes get the file's resources: those for which every key that is written holds."""

    ids: list[Pattern] | None = Field(
        None, min_length=1, description="Node ids. `*` stands for any characters. One of them must fit."
    )
    clusters: list[Pattern] | None = Field(
        None, min_length=1, description="What nodes name as their cluster, likewise."
    )
    metadata: dict[str, Any] | None = Field(
        None, min_length=1, description="What the node's metadata must hold; mappings in it may hold more."
    )


class ResourceFile(FileModel):
    """The file."""

    nodes: NodesSpec | None = Field(None, description="Which nodes it is for. Without it: for all.")
    resources: Annotated[list[Any], BeforeValidator(_resource_list)] = Field(
        description="Envoy's messages, each with its `@type` and a name, as in Envoy's own file subscriptions."
    )
    version_info: Any = Field(None, description="Envoy's files have one. Not used: versions come from the content.")
    type_url: Any = Field(None, description="Likewise: each resource says its own type.")
