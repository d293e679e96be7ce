"""Calls to a registry's HTTP API, as a test makes them: a few, in any event loop."""

import json
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp


class RefusedError(Exception):
    """An answer other than 2xx."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


async def call(
    method: str,
    url: str,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = 15.0,
) -> Any:
    """The answer, decoded where it is JSON. Bytes and text are sent as they are, all else as JSON.

    Every call has a connection of its own: a registry that was killed meanwhile leaves nothing behind.
    Raises RefusedError, aiohttp.ClientError or TimeoutError.
    """
    data = body if isinstance(body, bytes | str | None) else json.dumps(body)
    kind = {} if data is None else {"content-type": "application/json"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(timeout)) as http:
        asked = http.request(method, url, data=data, headers={**kind, **(headers or {})}, ssl=tls or True)
        async with asked as response:
            text = await response.text()
            if not response.ok:
                raise RefusedError(response.status, text)
            return json.loads(text) if response.content_type == "application/json" and text else text
