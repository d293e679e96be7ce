"""A cluster of several resources and namespaces: a model API for each path that is asked for."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from discovery.kubernetes.errors import ApiError, KubernetesError
from discovery.kubernetes.objects import (
    ENDPOINT_SLICES,
    NAMESPACES,
    POD_METADATA,
    PODS,
    SERVICES,
    EndpointSlice,
    Key,
    Known,
    Namespace,
    Pod,
    Service,
)
from discovery.kubernetes.presence import PATH, PATIENCE_S
from tests.kubernetes.double.model import ModelApi

_PLURALS: dict[type[Known], str] = {
    Service: SERVICES.path(),
    EndpointSlice: ENDPOINT_SLICES.path(),
    Pod: PODS.path(),
    Known: POD_METADATA.path(),
    Namespace: NAMESPACES.path(),
}


class _PathApi(ModelApi):
    """Objects as they are, instead of Services with a content."""

    def set(self, body: Mapping[str, Any]) -> None:
        metadata = body["metadata"]
        key = Key(metadata["namespace"], metadata["name"])
        self.revision += 1
        body = {**body, "metadata": {**metadata, "resourceVersion": str(self.revision)}}
        self._happened("MODIFIED" if key in self.objects else "ADDED", key, body)
        self.objects[key] = body


class Cluster:
    """Implements `discovery.kubernetes.client.Server`. Selectors are for the test to mind: it puts what they select.

    `presence` is what is asked whether the server is there at all."""

    def __init__(self) -> None:
        self._paths: dict[str, _PathApi] = {}
        self.presence = self.at(PATH)

    def put(self, *objects: Known) -> None:
        """Makes or changes objects, in this order."""
        for one in objects:
            body = msgspec.json.decode(msgspec.json.encode(one))
            for path in self._paths_of(one):
                self.at(path).set(body)

    def delete(self, *objects: Known) -> None:
        """They are gone."""
        for one in objects:
            for path in self._paths_of(one):
                self.at(path).delete(one.metadata.name, one.metadata.namespace)

    def of(self, type_: type[Known], namespace: str = "") -> ModelApi:
        """What answers for a resource, in one namespace or all."""
        return self.at(_path(type_, namespace))

    @property
    def paths(self) -> Mapping[str, ModelApi]:
        """By path."""
        return self._paths

    def all(self) -> tuple[ModelApi, ...]:
        """All that was asked so far, or has objects."""
        return tuple(self._paths.values())

    def fault(self, error: KubernetesError | None) -> None:
        """The whole API server answers so, and breaks what is open; None: it is well again."""
        for api in self.all():
            api.fault = error
            if error is not None:
                api.cut()

    def start_over(self) -> None:
        """All objects and all history are gone, as after a loss of its store."""
        for api in self.all():
            api.start_over()

    async def get(self, path: str, params: Mapping[str, str], *, metadata_only: bool = False) -> bytes:
        return await self.at(path).get(path, params, metadata_only=metadata_only)

    def watch(
        self, path: str, params: Mapping[str, str], *, metadata_only: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[bytes]]]:
        return self.at(path).watch(path, params, metadata_only=metadata_only)

    async def answers(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.presence.get(PATH, {})
        except ApiError as error:
            return not error.passing
        except (KubernetesError, TimeoutError):
            return False
        return True

    def at(self, path: str) -> _PathApi:
        return self._paths.setdefault(path, _PathApi())

    def _paths_of(self, one: Known) -> set[str]:
        return {_path(type(one), ""), _path(type(one), one.metadata.namespace)}


def _path(type_: type[Known], namespace: str) -> str:
    base, _, plural = _PLURALS[type_].rpartition("/")
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"
