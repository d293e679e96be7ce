"""Resources as people may see them: keys, passwords and tokens blacked out. Paths of files stay.

The fields are those that Envoy's API marks as sensitive (`udpa.annotations.sensitive`), by their names: one that only
looks like a secret loses nothing by it. What is inside of such a field is as secret as the field.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from xds.resources import types

REDACTED: Final = "[redacted]"

_SENSITIVE: Final = frozenset(
    {
        *("private_key", "password", "pkcs12", "session_ticket_keys", "generic_secret", "auth_password"),
        *("downstream_auth_password", "downstream_auth_passwords", "access_token", "authorization_token"),
        *("google_refresh_token", "json_key", "session_token", "secret_access_key", "secret_data", "token_secret"),
        *("hmac_secret", "client_secret", "backend_token", "credentials_data_source", "users", "credentials"),
        *("token",),
    }
)
_INLINE: Final = {"inline_string": REDACTED, "inline_bytes": b64encode(REDACTED.encode()).decode()}
"""How a DataSource holds a value itself, and what is shown instead: the message stays one of its type."""
_NAMES: Final = frozenset({"@type", "name", "filename", "environment_variable", "path", "client", "client_id"})
"""What stands beside a secret, and says whose it is, or where."""
_NOT_INSIDE: Final = frozenset({"sds_config", "address", "cookie_names", "cookie_configs"})
"""What stands there too, and is about fetching or naming, all of it."""
_CLOSE: Final = 0.85
_HUMP: Final = re.compile("(?<!^)(?=[A-Z])")


def redacted(type_url: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """A message in Envoy's JSON form (field names as in the proto files), with its secrets blacked out.

    In a Secret that is every value that is not the path of a file or the name of something.
    """
    return _fields(data, False, type_url == types.SECRET)


def is_sensitive(type_url: str, path: tuple[str | int, ...]) -> bool:
    """Whether what stands at this path of a resource, as operators write it, must not be shown.

    A key that is nearly a sensitive one counts too: what is misspelt holds the secret already.
    """
    keys = [_HUMP.sub("_", step).lower() for step in path if isinstance(step, str)]
    return type_url == types.SECRET or any(get_close_matches(key, _SENSITIVE, n=1, cutoff=_CLOSE) for key in keys)


def _fields(fields: Mapping[str, Any], hidden: bool, inline: bool) -> dict[str, Any]:
    return {
        key: _redacted(value, key, (hidden or key in _SENSITIVE) and key not in _NOT_INSIDE, inline)
        for key, value in fields.items()
    }


def _redacted(value: Any, key: str, hidden: bool, inline: bool) -> Any:
    """`hidden`: it is in a sensitive field. `inline`: whatever a DataSource holds itself is a secret."""
    if isinstance(value, Mapping):
        return _fields(value, hidden, inline)
    if isinstance(value, list):
        return [_redacted(item, key, hidden, inline) for item in value]
    if not isinstance(value, str) or key in _NAMES or not (hidden or (inline and key in _INLINE)):
        return value
    return _INLINE.get(key, REDACTED)
