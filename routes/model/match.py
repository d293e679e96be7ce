"""`match`: which requests a rule takes."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag

from operator_files.validate import FileModel
from operator_files.values import NonEmpty, Text
from routes.model.values import ByHeader, Method, PathText, PrefixText, Regex, Token

ONE_KEY: dict[str, Any] = {"minProperties": 1, "maxProperties": 1}


def text_or_mapping(value: object) -> str:
    """The tag of the union's member for a short form (text) or the long one (a mapping)."""
    return "<keys>" if isinstance(value, dict) else "<text>"


L = TypeVar("L")
TextOr = Annotated[Annotated[Text, Tag("<text>")] | Annotated[L, Tag("<keys>")], Discriminator(text_or_mapping)]
"""A short form of plain text, or a mapping."""


class PatternSpec(FileModel, json_schema_extra=ONE_KEY):
    """How a header, query parameter, cookie or origin must look: exactly one of these keys."""

    exact: Text | None = Field(None, description="Equal to this text; what plain text means.")
    prefix: Text | None = Field(None, min_length=1, description="Begins with this text.")
    suffix: Text | None = Field(None, min_length=1, description="Ends with this text.")
    regex: Regex | None = Field(None, description="Matches this RE2 regex as a whole.")
    present: Literal[True] | None = Field(None, description="`true`: is there, whatever its value.")
    absent: Literal[True] | None = Field(None, description="`true`: is not there.")
    range: Annotated[list[int], Field(min_length=2, max_length=2)] | None = Field(
        None, description="`[start, end]`: a whole number from start up to, but without, end. Headers only."
    )


Pattern = TextOr[PatternSpec]


class MatchSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """One entry of `match`: all of its keys must hold (AND). A request needs to fit one entry of the list (OR)."""

    path: PathText | None = Field(None, description="The whole path, without the query.")
    prefix: PrefixText | None = Field(
        None, description="Whole segments at the path's start: `/api` takes `/api` and `/api/x`, not `/apix`."
    )
    regex: Regex | None = Field(None, description="An RE2 regex for the whole path, without the query.")
    methods: list[Method] | None = Field(None, min_length=1, description="Any of these methods.")
    headers: ByHeader[Pattern] | None = Field(
        None, min_length=1, description="Headers by name (without case), each with what its value must be."
    )
    query: dict[NonEmpty, Pattern] | None = Field(
        None, min_length=1, description="Query parameters by name, each with what its value must be."
    )
    cookies: dict[Token, Pattern] | None = Field(
        None, min_length=1, description="Cookies by name, each with what its value must be."
    )
