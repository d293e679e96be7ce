"""REST-JSON polling (xds_protocol, "REST-JSON polling subscriptions"): POST /v3/discovery:clusters and its like.

200 with a DiscoveryResponse in proto3's JSON, also where there is nothing; 304 where the client has the version; 503
while this server is not ready. Never 404 for a type: a client would keep for ever what it has.

Resources say where others come from: a cluster's endpoints, a listener's routes. Where that is the ADS stream, which
a client that polls does not have, it is told to poll for them too.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from google.protobuf import json_format

import envoy_api
from xds.host.polls import POLLED, Content, Polled, Polls
from xds.resources.node import Node
from xds.resources.resource import Resource, RouteTable, checksum_text, content_hash
from xds.streams.shared import Memo
from xds.streams.wire import MalformedRequestError, node_of, requested

_REQUEST = "envoy.service.discovery.v3.DiscoveryRequest"
_LARGEST = 4 << 20
"""Of a request, in bytes. A node names all extensions of its Envoy: some hundred kilobytes."""

_BESIDE_ADS = frozenset({"ads", "resourceApiVersion", "initialFetchTimeout"})
"""The fields of a ConfigSource that stands for the ADS stream."""


def config_source(cluster: str, refresh: float) -> dict[str, Any]:
    """A ConfigSource that polls the server in `cluster` of the client's bootstrap, every `refresh` seconds."""
    return {
        "apiConfigSource": {
            "apiType": "REST",
            "transportApiVersion": "V3",
            "clusterNames": [cluster],
            "refreshDelay": f"{refresh:.3f}s",
            "requestTimeout": "5s",
        },
        "resourceApiVersion": "V3",
    }


class RestPolling:
    """The pages; `application` serves them. `source` is where its clients are told to get other resources."""

    def __init__(self, polls: Polls, source: Mapping[str, Any]) -> None:
        self._polls = polls
        self._source = source
        self._salt = content_hash(json.dumps(source).encode())
        self._texts = Memo(max_entries=50_000)
        self._one_at_a_time = asyncio.Lock()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST)
        app.add_routes([web.post(f"/v3/discovery:{kind}", self._serving(url)) for url, kind in POLLED.items()])
        return app

    def _serving(self, type_url: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def serve(request: web.Request) -> web.Response:
            try:
                data = await request.read()
            except web.RequestPayloadError as error:  # not what Content-Encoding or Transfer-Encoding says
                return web.Response(status=400, text=f"the body cannot be read: {error}")
            if (reason := self._polls.why_not_ready()) is not None:
                return web.Response(status=503, text=reason)
            try:
                asked = _parsed(data)
            except ValueError as error:
                return web.Response(status=400, text=f"not a {_REQUEST}: {error}")
            if asked.type_url not in ("", type_url):
                return web.Response(status=400, text=f"this path serves {type_url}, not {asked.type_url}")
            if not asked.node.id:
                return web.Response(status=400, text="the request must carry node.id")
            try:
                names = requested(b"", asked.resource_names, asked.resource_locators)
                node = node_of(asked.node)
            except MalformedRequestError as error:
                return web.Response(status=400, text=str(error))
            return await self._answer(type_url, node, asked.version_info, names)

        return serve

    async def _answer(self, type_url: str, node: Node, known: str, names: tuple[str, ...]) -> web.Response:
        """`known` is the version that the client has."""
        content = self._polls.content(node, type_url, names)
        version = checksum_text(int(content.version, 16), self._salt)
        unchanged = known == version
        self._polls.on_poll(Polled(node, type_url, version, unchanged=unchanged))
        if unchanged:
            return web.Response(status=304)
        # In a thread: a thousand clusters that were never asked for take a second. It builds no message types that
        # translation has not built on the event loop already, and resources never change.
        async with self._one_at_a_time:
            text = await asyncio.to_thread(self._text, type_url, version, content)
        return web.Response(text=text, content_type="application/json")

    def _text(self, type_url: str, version: str, content: Content) -> str:
        resources = ",".join(map(self._resource, content.resources))
        head = json.dumps({"versionInfo": version, "typeUrl": type_url})
        control_plane = json.dumps({"identifier": self._polls.identifier})
        return f'{head[:-1]}, "controlPlane": {control_plane}, "resources": [{resources}]}}'

    def _resource(self, resource: Resource) -> str:
        """An Any. Of a route table only its virtual hosts are remembered: each version of it would be a whole one."""
        if not isinstance(resource, RouteTable):
            return self._texts.get(resource, lambda: self._written(resource.type_url, resource.body), len)
        head = self._written(resource.type_url, resource.head)
        hosts = ",".join(map(self._host, resource.hosts))
        return f'{head[:-1]}, "virtualHosts": [{hosts}]}}' if hosts else head

    def _host(self, host: Resource) -> str:
        return self._texts.get(("host", host), lambda: self._written(host.type_url, host.body, inner=True), len)

    def _written(self, type_url: str, body: bytes, *, inner: bool = False) -> str:
        message = envoy_api.class_for_url(type_url).FromString(body)
        data = json_format.MessageToDict(message, descriptor_pool=envoy_api.pool)
        data = _polling(data, self._source)
        return json.dumps(data if inner else {"@type": type_url, **data}, ensure_ascii=False)


def _parsed(data: bytes) -> Any:
    """A DiscoveryRequest, whatever else is in it. Raises ValueError."""
    try:
        request = json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(request, Mapping):
        raise ValueError("it has to be an object")
    node = request.get("node")
    if isinstance(node, Mapping):
        # Hundreds of them, with every request, and nobody looks at them.
        request = {**request, "node": {key: value for key, value in node.items() if key != "extensions"}}
    made = envoy_api.message_class(_REQUEST)()
    try:
        json_format.ParseDict(request, made, ignore_unknown_fields=True, descriptor_pool=envoy_api.pool)
    except Exception as error:  # of many kinds: it assumes that data has the shapes that JSON text for the type has
        raise ValueError(str(error)) from error
    return made


def _polling(data: Any, source: Mapping[str, Any]) -> Any:
    """The same with `source` in the place of every ConfigSource that stands for the ADS stream."""
    if isinstance(data, list):
        return [_polling(item, source) for item in data]
    if not isinstance(data, dict):
        return data
    if data.get("ads") == {} and data.keys() <= _BESIDE_ADS:
        return {**{key: value for key, value in data.items() if key != "ads"}, **source}
    return {key: _polling(value, source) for key, value in data.items()}
