"""Resources as people may see them: keys, passwords and tokens blacked out. Paths of files stay.

The fields are those that Envoy's API marks as sensitive (`udpa.annotations.sensitive`), by their names: one that only
looks like a secret loses nothing by it.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from xds.resources import types

REDACTED: Final = "[redacted]"

_SENSITIVE: Final = frozenset(
    {
        *("private_key", "password", "pkcs12", "session_ticket_keys", "generic_secret", "auth_password"),
        *("downstream_auth_password", "downstream_auth_passwords", "access_token", "authorization_token"),
        *("google_refresh_token", "json_key", "session_token", "secret_access_key", "secret_data", "token_secret"),
        *("hmac_secret", "client_secret", "backend_token", "credentials_data_source", "users", "credentials"),
    }
)
_INLINE: Final = {"inline_string": REDACTED, "inline_bytes": b64encode(REDACTED.encode()).decode()}
"""How a DataSource holds a value itself, and what is shown instead: the message stays one of its type."""
_HUMP: Final = re.compile("(?<!^)(?=[A-Z])")


def redacted(type_url: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """A message in Envoy's JSON form (field names as in the proto files), with its secrets blacked out.

    In a Secret that is every value that is not the path of a file or the name of something.
    """
    return {key: _redacted(value, type_url == types.SECRET or key in _SENSITIVE, key) for key, value in data.items()}


def is_sensitive(type_url: str, path: tuple[str | int, ...]) -> bool:
    """Whether what stands at this path of a resource, as operators write it, must not be shown."""
    keys = {_HUMP.sub("_", step).lower() for step in path if isinstance(step, str)}
    return type_url == types.SECRET or not keys.isdisjoint(_SENSITIVE)


def _redacted(value: Any, hidden: bool, key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _redacted(item, hidden or name in _SENSITIVE, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, hidden, key) for item in value]
    if not hidden or not isinstance(value, str):
        return value
    return _INLINE.get(key, REDACTED if key in _SENSITIVE else value)
