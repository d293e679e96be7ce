"""Names of the form xdstp://authority/type/id?context, and the collections that they are in.

The rules are those of xRFC TP1 ("xdstp:// structured resource naming"): two names are equal when their parts are,
whatever the order of their context parameters and whatever of them is percent-encoded. A glob collection,
`.../directory/*?context`, has the resources directly in that directory that have that very context.
"""

from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

SCHEME: Final = "xdstp://"

_PRINTABLE: Final = frozenset(map(chr, range(0x20, 0x7F)))


def _but(reserved: str) -> str:
    return "".join(sorted(_PRINTABLE - set(reserved)))


# What Envoy leaves as it is in each part, so that our names are those that it compares with as strings.
_AUTHORITY: Final = _but("%/?#")
_ID: Final = _but("%:?#[]")
_CONTEXT: Final = _but("%#[]&=")


def canonical(name: str) -> str:
    """The one way to write a name. What is no xdstp name, or not a well-formed one, is returned as it is.

    A name has no fragment: that is a directive for whoever looks for a resource, and not for the server.
    """
    if not name.startswith(SCHEME) or "#" in name:
        return name
    path, _, query = name.removeprefix(SCHEME).partition("?")
    authority, _, rest = path.partition("/")
    kind, slash, id_ = rest.partition("/")
    if not kind:
        return name
    return f"{SCHEME}{_encoded(authority, _AUTHORITY)}/{kind}{slash}{_encoded(id_, _ID)}{_context(query)}"


def is_collection(name: str) -> bool:
    """Whether a canonical name is that of a glob collection."""
    return name.startswith(SCHEME) and name.partition("?")[0].endswith("/*")


def collection_of(name: str) -> str | None:
    """The glob collection that a resource of this canonical name is in, if it is in any."""
    if not name.startswith(SCHEME):
        return None
    path, mark, query = name.partition("?")
    return f"{path.rpartition('/')[0]}/*{mark}{query}"


def _encoded(text: str, safe: str) -> str:
    return quote_from_bytes(unquote_to_bytes(text), safe)


def _context(query: str) -> str:
    """The parameters in order. Of one that is there twice the first counts."""
    parameters: dict[str, str] = {}
    for parameter in filter(None, query.split("&")):
        key, _, value = (_encoded(part, _CONTEXT) for part in parameter.partition("="))
        parameters.setdefault(key, value)
    return "?" + "&".join(sorted(f"{key}={value}" for key, value in parameters.items())) if parameters else ""
