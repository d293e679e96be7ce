"""A document against a pydantic model: the model's value, or every problem at once, each at its place."""

import difflib
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypeVar, Union

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError
from pydantic_core import ErrorDetails

from operator_files import codes
from operator_files.problem import Code, Problem, in_order
from operator_files.values import WRITTEN
from operator_files.yaml import Document, Loc


class FileModel(BaseModel):
    """Base of every mapping in an operator file: frozen, strict, and nothing unknown is let through.

    `reserved` names keys that are known but cannot be used, with the reason: what a later version will bring, or
    what another tool calls it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=False)
    reserved: ClassVar[Mapping[str, str]] = {}


M = TypeVar("M", bound=BaseModel)

_MOST_LIKELY: Final = 5
_MOST_LISTED: Final = 40


class Outcome(NamedTuple, Generic[M]):
    """The model's value or None, the problems in the order of the file, and the places that are wrong."""

    value: M | None
    problems: tuple[Problem, ...] = ()
    wrong: tuple[Loc, ...] = ()


def validate(model: type[M], document: Document) -> tuple[M | None, tuple[Problem, ...]]:
    """The document as a `model`, or None and all its problems in the order of the file.

    A validator of the model says what is wrong by raising `values.refused(...)`; pydantic's own errors are put into
    plain words. Tags of discriminated unions must be written `<like this>`; they never show in a position.
    """
    return examine(model, document)[:2]


def examine(model: type[M], document: Document, *, nulls_under: str | None = None) -> Outcome[M]:
    """As `validate`, and says which places are wrong.

    With `nulls_under`, a key without a value is a problem (`match:` and nothing after it must not mean that there is
    no match), except below keys of that name. Without it, null is as if the key were not there.
    """
    wrong = [] if nulls_under is None else list(_nulls(document.data, nulls_under, ()))
    problems = [
        document.problem(
            codes.WRONG_VALUE, "there is no value here", loc, fix="write one, or delete the key", key=True
        )
        for loc in wrong
    ]
    try:
        value = model.model_validate(document.data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
        for detail in details:
            loc = _without_tags(detail["loc"], document.data, missing_last=detail["type"] == "missing")
            if loc not in wrong and not (detail["type"] == "missing" and _is_misspelt(detail["loc"], unknown)):
                problems.append(_problem(model, document, detail, loc))
            wrong.append(loc)
    else:
        if not problems:
            return Outcome(value)
    return Outcome(None, in_order(problems), tuple(dict.fromkeys(wrong)))


def _is_misspelt(missing: Loc, unknown: Collection[Loc]) -> bool:
    """Whether a missing key stands there in another spelling, which is a problem of its own already."""
    beside = [str(loc[-1]) for loc in unknown if loc[:-1] == missing[:-1]]
    return nearest(str(missing[-1]), beside) is not None


def _nulls(data: object, except_under: str, loc: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if data is None:
        yield loc
    elif isinstance(data, dict):
        for key, value in data.items():
            if key != except_under and (value is None or isinstance(value, dict | list)):
                yield from _nulls(value, except_under, (*loc, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            if value is None or isinstance(value, dict | list):
                yield from _nulls(value, except_under, (*loc, index))


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A fix that names the nearest known word, or those that it is the beginning or the end of; else lists them all,
    or of very many those that are most like it."""
    near = nearest(word, known)
    if near is not None:
        return f"did you mean `{near}`?"
    partly = [name for name in sorted(known) if name.endswith(f"_{word}") or name.startswith(f"{word}_")]
    if 0 < len(partly) <= _MOST_LIKELY:
        return f"did you mean {' or '.join(f'`{name}`' for name in partly)}?"
    if len(known) > _MOST_LISTED:
        likely = difflib.get_close_matches(word, sorted(known), n=_MOST_LIKELY, cutoff=0.0)
        return f"known here, of {len(known)}, and most like it: " + ", ".join(sorted(likely))
    return "known here: " + ", ".join(sorted(known)) if known else ""


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that `word` most likely meant, or None: one slip away for every four letters of it."""
    simple = word.lower().replace("_", "").replace("-", "")
    for candidate in sorted(known):
        if candidate.lower().replace("_", "").replace("-", "") == simple:
            return candidate
    likely = difflib.get_close_matches(word, sorted(known), n=5, cutoff=0.6)
    near = min(likely, key=lambda candidate: _slips(word, candidate), default=None)
    return near if near is not None and _slips(word, near) <= max(1, len(word) // 4) else None


def _slips(word: str, other: str) -> int:
    """How many letters are missing, too many, wrong, or swapped with their neighbour (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        row = [i]
        for j, meant in enumerate(other, start=1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != meant))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == meant:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]


def _problem(model: type[BaseModel], document: Document, detail: ErrorDetails, loc: tuple[str | int, ...]) -> Problem:
    kind = detail["type"]
    is_key = detail["loc"][-1:] == ("[key]",)
    if kind == "extra_forbidden":
        return _unknown_key(model, document, loc)
    if kind == "missing":
        return document.problem(
            codes.MISSING_KEY, f"the key `{loc[-1]}` is missing here", loc[:-1], fix=f"add `{loc[-1]}: ...`", key=True
        )
    context = detail.get("ctx", {})
    if "text" in context:  # one of our own
        code = Code(kind, "")
        fix = str(context.get("fix", "")).replace(WRITTEN, document.written(loc))
        return document.problem(code, str(context["text"]), loc, fix=fix, key=is_key)
    message, fix = _plain_words(kind, context, detail)
    return document.problem(codes.WRONG_VALUE, message, loc, fix=fix, key=is_key)


def _unknown_key(model: type[BaseModel], document: Document, loc: Loc) -> Problem:
    key = str(loc[-1])
    models = list(_models_at(model, loc[:-1]))
    reasons = [reason for found in models for name, reason in getattr(found, "reserved", {}).items() if name == key]
    if reasons:
        return document.problem(codes.UNKNOWN_KEY, f"`{key}` {reasons[0]}", loc, key=True, fix="delete the key")
    known = {name for found in models for name in _keys(found)}
    elsewhere = sorted(set(_places_of(model, key)))
    if elsewhere and len(elsewhere) <= 3:
        fix = "it belongs in " + " or ".join(f"`{place}`" for place in elsewhere)
    else:
        fix = did_you_mean(key, known)
    return document.problem(codes.UNKNOWN_KEY, f"the key `{key}` is not known here", loc, fix=fix, key=True)


_TYPE_WORDS = {
    "string_type": ("text", "write one word or quoted text"),
    "int_type": ("a whole number", "write it without quotes and without a point"),
    "int_from_float": ("a whole number", "write it without a point"),
    "bool_type": ("true or false", "write `true` or `false`, without quotes"),
    "list_type": ("a list", "begin each entry with `- `, or write `[...]`"),
    "dict_type": ("a mapping of keys to values", "write `key: value` lines"),
    "model_type": ("a mapping of keys to values", "write `key: value` lines"),
    "model_attributes_type": ("a mapping of keys to values", "write `key: value` lines"),
    "float_type": ("a number", "write it without quotes"),
}


def _plain_words(kind: str, context: Mapping[str, Any], detail: ErrorDetails) -> tuple[str, str]:
    """pydantic's errors in an operator's words: what must stand here, and how to write it."""
    if kind in _TYPE_WORDS:
        word, fix = _TYPE_WORDS[kind]
        return ("there is no value here", fix) if detail["input"] is None else (f"this must be {word}", fix)
    if kind in ("literal_error", "enum"):
        expected = str(context["expected"]).replace("'", "`")
        words = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        near = nearest(str(detail["input"]), words)
        return f"this must be {expected}", f"did you mean `{near}`?" if near else ""
    if kind in ("greater_than_equal", "greater_than"):
        least = context.get("ge", context.get("gt"))
        return f"this must be {'at least' if 'ge' in context else 'more than'} {least}", ""
    if kind in ("less_than_equal", "less_than"):
        most = context.get("le", context.get("lt"))
        return f"this must be {'at most' if 'le' in context else 'less than'} {most}", ""
    if kind == "too_short" and isinstance(detail["input"], str):
        return "this text must not be empty", ""
    if kind == "too_short":
        return f"this needs at least {context['min_length']}, but has {context['actual_length']}", ""
    if kind == "too_long":
        return f"this may have at most {context['max_length']}, but has {context['actual_length']}", ""
    if kind == "string_too_long":
        return f"this text may have at most {context['max_length']} characters", "shorten it"
    if kind == "string_too_short":
        return "this text must not be empty", ""
    message = detail["msg"]
    return message[:1].lower() + message[1:], ""


def _without_tags(loc: tuple[int | str, ...], data: object, *, missing_last: bool) -> tuple[str | int, ...]:
    """The location in the file: without the tags of unions, which are written `<tag>`, and marks of keys."""
    kept: list[int | str] = []
    for index, step in enumerate(loc):
        is_real = isinstance(data, dict) and step in data
        is_last_missing = missing_last and index == len(loc) - 1
        if isinstance(step, str) and not is_real and not is_last_missing and (step[:1] in "<[" or step == "[key]"):
            continue
        kept.append(step)
        data = _step_into(data, step)
    return tuple(kept)


def _step_into(data: object, step: int | str) -> object:
    if isinstance(data, dict):
        return data.get(step)
    if isinstance(data, list) and isinstance(step, int) and step < len(data):
        return data[step]
    return None


def _keys(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name


def _places_of(annotation: Any, key: str, place: str = "", seen: tuple[type, ...] = ()) -> Iterator[str]:
    """The mappings of the format that do have this key: a wrong indentation is the commonest mistake in YAML."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return
        if place and key in _keys(annotation):
            yield place
        for name, field in annotation.model_fields.items():
            inner = f"{place}.{field.alias or name}".lstrip(".")
            yield from _places_of(field.annotation, key, inner, (*seen, annotation))
        return
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        arguments = arguments[:1]
    elif origin in (list, tuple):
        place += "[]"
    elif origin is dict:
        arguments, place = arguments[1:], f"{place}.NAME"
    for member in arguments:
        yield from _places_of(member, key, place, seen)


def _models_at(annotation: Any, loc: Loc) -> Iterator[type[BaseModel]]:
    """The models that may stand at `loc`: followed through lists, mappings and unions."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from _models_at(typing.get_args(annotation)[0], loc)
    elif origin in (Union, types.UnionType):
        for member in typing.get_args(annotation):
            yield from _models_at(member, loc)
    elif origin in (list, tuple):
        if loc:
            yield from _models_at(typing.get_args(annotation)[0], loc[1:])
    elif origin is dict:
        if loc:
            yield from _models_at(typing.get_args(annotation)[1], loc[1:])
    elif isinstance(annotation, type) and issubclass(annotation, RootModel):
        yield from _models_at(annotation.model_fields["root"].annotation, loc)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not loc:
            yield annotation
            return
        for name, field in annotation.model_fields.items():
            if (field.alias or name) == loc[0]:
                yield from _models_at(field.annotation, loc[1:])
