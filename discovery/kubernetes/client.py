"""Kubernetes' HTTP API: lists and watches, as bytes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Api(Protocol):
    """What a reflector needs of a client. Both raise KubernetesError."""

    async def get(self, path: str, params: Mapping[str, str], *, metadata_only: bool = False) -> bytes:
        """The answer's body."""
        ...

    def watch(
        self, path: str, params: Mapping[str, str], *, metadata_only: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[bytes]]]:
        """The stream's lines, those that came together in one go. It ends when the server ends it."""
        ...
