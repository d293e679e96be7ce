"""Client status discovery (CSDS, envoy/service/status/v3/csds.proto): what this server believes its clients have."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

import envoy_api
from xds.host.node_match import UnsupportedMatcherError, checked, matches_any
from xds.host.rpc import Call, Ending, Rpc, Served, next_request, served
from xds.resources import types
from xds.resources.node import Node
from xds.resources.redaction import redacted
from xds.resources.resource import Resource
from xds.streams.resource_status import ResourceStatus, resource_statuses
from xds.streams.status import SyncState
from xds.streams.stream import Stream

_REQUEST: Final = "envoy.service.status.v3.ClientStatusRequest"
_RESPONSE: Final = "envoy.service.status.v3.ClientStatusResponse"
_CONFIG: Final = "envoy.service.status.v3.ClientConfig"
_SERVICE: Final = "envoy.service.status.v3.ClientStatusDiscoveryService"
STREAM: Final = Rpc(_SERVICE, "StreamClientStatus", _REQUEST, _RESPONSE, client_streams=True, server_streams=True)
FETCH: Final = Rpc(_SERVICE, "FetchClientStatus", _REQUEST, _RESPONSE)

MAX_RESOURCES: Final = 200_000
"""In one answer: twenty megabytes without contents. Who wants more has to say which nodes."""

_CONFIG_STATUS: Final = {
    SyncState.SYNCED: "SYNCED",
    SyncState.NOT_SENT: "NOT_SENT",
    SyncState.STALE: "STALE",
    SyncState.DRAINING: "STALE",
    SyncState.NACKED: "ERROR",
}


class ClientStatuses:
    """`streams` gives the streams that clients have open."""

    def __init__(self, streams: Callable[[], Iterable[Stream]], ending: Ending) -> None:
        self._streams, self._ending = streams, ending

    def methods(self) -> tuple[Served, ...]:
        return (served(STREAM, self._stream), served(FETCH, self._fetch))

    async def _stream(self, _: Any, call: Call) -> None:
        while (data := await next_request(call, self._ending)) is not None:
            await call.write(await self._fetch(data, call))

    async def _fetch(self, data: bytes, call: Call) -> bytes:
        try:
            request = envoy_api.message_class(_REQUEST).FromString(data)
            by_node = await self._collected(checked(request.node_matchers))
        except (DecodeError, UnsupportedMatcherError) as error:
            await call.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {_REQUEST} for this server: {error}")
            raise
        except _TooMuchError:
            await call.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"these nodes have more than {MAX_RESOURCES} resources: match fewer nodes",
            )
            raise
        # In a thread, for it may take seconds; what was collected never changes.
        return await asyncio.to_thread(_encoded, by_node, request.exclude_resource_contents)

    async def _collected(self, matchers: Sequence[Any]) -> dict[str, tuple[Node, list[ResourceStatus]]]:
        """By node id: a client of single-type services has several streams."""
        found: dict[str, tuple[Node, list[ResourceStatus]]] = {}
        count = 0
        for stream in self._streams():
            if (node := stream.node) is None or not matches_any(matchers, node):
                continue
            _, statuses = found.setdefault(node.id, (node, []))
            for state in tuple(stream.types.values()):
                known = list(resource_statuses(state, stream.target(state.type_url)))
                statuses += known
                if (count := count + len(known)) > MAX_RESOURCES:
                    raise _TooMuchError
                # Others have their turn.
                await asyncio.sleep(0)
        return found


class _TooMuchError(Exception):
    pass


def _encoded(by_node: dict[str, tuple[Node, list[ResourceStatus]]], exclude_contents: bool) -> bytes:
    response = envoy_api.message(_RESPONSE)
    for _, (node, statuses) in sorted(by_node.items()):
        config = response.config.add(node=_node(node))
        for status in sorted(statuses, key=_rank):
            config.generic_xds_configs.add(**_generic(status, exclude_contents))
    return envoy_api.encode(response)


def _rank(status: ResourceStatus) -> tuple[int, str, str]:
    known = status.type_url in types.ORDER
    return types.ORDER.index(status.type_url) if known else len(types.ORDER), status.type_url, status.name


def _generic(status: ResourceStatus, exclude_contents: bool) -> dict[str, Any]:
    """The fields of a GenericXdsConfig."""
    fields: dict[str, Any] = {
        "type_url": status.type_url,
        "name": status.name,
        "config_status": _CONFIG_STATUS[status.state],
        "client_status": _client_status(status),
    }
    if status.sent_at is not None:
        fields["last_updated"] = _timestamp(status.sent_at)
    if status.has is not None:
        fields["version_info"] = status.has.version
        if not exclude_contents:
            fields["xds_config"] = _shown(status.has)
    if status.nack is not None:
        failed = {"failed_configuration": _shown(status.wanted)} if status.wanted and not exclude_contents else {}
        fields["error_state"] = {
            **failed,
            "last_update_attempt": _timestamp(status.nack.at),
            "details": status.nack.message,
            "version_info": status.nack.version,
        }
    return fields


def _client_status(status: ResourceStatus) -> str:
    if status.state is SyncState.NACKED:
        return "NACKED"
    if status.has is not None:
        return "ACKED"
    return "DOES_NOT_EXIST" if status.wanted is None else "REQUESTED"


@lru_cache(maxsize=4096)
def _shown(resource: Resource) -> Any:
    """The resource as an Any, its secrets blacked out."""
    kind = envoy_api.class_for_url(resource.type_url)
    data = envoy_api.to_dict(kind.FromString(resource.body))
    if (safe := redacted(resource.type_url, data)) != data:
        return envoy_api.pack(envoy_api.parse(kind, safe))
    return {"type_url": resource.type_url, "value": resource.body}


def _timestamp(at: float) -> dict[str, int]:
    nanos = round(at * 1e9)
    return {"seconds": nanos // 10**9, "nanos": nanos % 10**9}


def _node(node: Node) -> dict[str, Any]:
    """Envoy's Node, as far as it is remembered."""
    name, _, version = node.user_agent.rpartition(" ")
    fields: dict[str, Any] = {
        "id": node.id,
        "cluster": node.cluster,
        "locality": dict(zip(("region", "zone", "sub_zone"), node.locality, strict=True)),
        "user_agent_name": name or version,
        "client_features": sorted(node.client_features),
    }
    if name:
        fields["user_agent_version"] = version
    if node.metadata:
        fields["metadata"] = dict(node.metadata)
    return fields
