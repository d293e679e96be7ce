"""Server reflection (grpc/reflection/v1/reflection.proto): what grpcurl and its like ask for before they call.

grpcio-reflection knows v1alpha only, and descriptors that have services in them; those of Envoy's API here have none,
for they are made from messages. So the services are described from the methods that are served, and both versions
answered, which have the same messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import grpc
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

import envoy_api
from xds.host import grpc_messages
from xds.host.grpc_messages import REFLECTION, message_class
from xds.host.rpc import Call, Ending, Rpc, Served, Stream, UnansweredError, next_request, served

METHODS: Final = tuple(
    Rpc(
        f"{package}.ServerReflection",
        "ServerReflectionInfo",
        f"{package}.ServerReflectionRequest",
        f"{package}.ServerReflectionResponse",
        client_streams=True,
        server_streams=True,
    )
    for package in REFLECTION
)

_POOLS: Final = (envoy_api.pool, grpc_messages.pool())
_INVALID_ARGUMENT, _NOT_FOUND = 3, 5
_REMEMBERED: Final = 32
"""Files that are remembered with all that they need, up to 100 kB: to gather them takes as long as hundreds of calls
of a service on the same port."""


class Reflection:
    """Shows `rpcs`, and itself."""

    def __init__(self, rpcs: Iterable[Rpc], ending: Ending) -> None:
        self._ending = ending
        self._services: dict[str, list[Rpc]] = {}
        for rpc in (*rpcs, *METHODS):
            self._services.setdefault(rpc.service, []).append(rpc)
        self._encoded = lru_cache(_REMEMBERED)(self._encoded_with_imports)

    def methods(self) -> tuple[Served, ...]:
        return tuple(served(rpc, self._serving(rpc)) for rpc in METHODS)

    def _serving(self, rpc: Rpc) -> Stream:
        async def serve(_: Any, call: Call) -> None:
            while (data := await next_request(call, self._ending)) is not None:
                try:
                    answer = self.answer(rpc, data)
                except UnansweredError as failure:
                    await call.abort(failure.status, str(failure))
                await call.write(answer)

        return serve

    def answer(self, rpc: Rpc, data: bytes) -> bytes:
        """What a request of one of METHODS is answered. Raises UnansweredError."""
        try:
            request = message_class(rpc.request).FromString(data)
        except DecodeError as error:
            raise UnansweredError(grpc.StatusCode.INVALID_ARGUMENT, f"not a {rpc.request}: {error}") from error
        answer = {"valid_host": request.host, "original_request": request, **self._answer(request)}
        encoded: bytes = message_class(rpc.response)(**answer).SerializeToString()
        return encoded

    def _answer(self, request: Any) -> dict[str, Any]:
        match request.WhichOneof("message_request"):
            case "list_services":
                return {"list_services_response": {"service": [{"name": name} for name in sorted(self._services)]}}
            case "file_by_filename":
                return self._found(self.file_named(request.file_by_filename), request.file_by_filename)
            case "file_containing_symbol":
                return self._found(self.file_with(request.file_containing_symbol), request.file_containing_symbol)
            case "all_extension_numbers_of_type":
                # No message of a proto3 API has extensions.
                name = request.all_extension_numbers_of_type
                none = {"all_extension_numbers_response": {"base_type_name": name}}
                return none if self.file_with(name) is not None else _not_found(name)
            case "file_containing_extension":
                return _not_found(f"an extension of {request.file_containing_extension.containing_type}")
            case _:
                return _error(_INVALID_ARGUMENT, "the request asks for nothing")

    def _found(self, file: FileDescriptorProto | None, asked: str) -> dict[str, Any]:
        if file is None:
            return _not_found(asked)
        return {"file_descriptor_response": {"file_descriptor_proto": self._encoded(file.name)}}

    def _encoded_with_imports(self, name: str) -> Sequence[bytes]:
        file = self.file_named(name)
        assert file is not None, name
        return tuple(each.SerializeToString(deterministic=True) for each in self._with_imports(file))

    def _with_imports(self, file: FileDescriptorProto) -> Iterator[FileDescriptorProto]:
        """The file, and everything that it needs, as other servers answer."""
        seen = {file.name}
        waiting = [file]
        while waiting:
            yield (each := waiting.pop(0))
            for name in each.dependency:
                if name not in seen and (found := self.file_named(name)) is not None:
                    seen.add(name)
                    waiting.append(found)

    def file_named(self, name: str) -> FileDescriptorProto | None:
        """The file of that name; a service has one of its own."""
        for service in self._services:
            if _file_of(service) == name:
                return self._service_file(service)
        return next((_proto(file) for pool in _POOLS if (file := _search(pool.FindFileByName, name))), None)

    def file_with(self, symbol: str) -> FileDescriptorProto | None:
        """The file that declares a service, a method, a message or an enum."""
        for service, rpcs in self._services.items():
            if symbol == service or symbol in (f"{service}.{rpc.name}" for rpc in rpcs):
                return self._service_file(service)
        return next(
            (_proto(file) for pool in _POOLS if (file := _search(pool.FindFileContainingSymbol, symbol))), None
        )

    def _service_file(self, service: str) -> FileDescriptorProto:
        package, _, name = service.rpartition(".")
        file = FileDescriptorProto(name=_file_of(service), package=package, syntax="proto3")
        described = file.service.add(name=name)
        needed: set[str] = set()
        for rpc in self._services[service]:
            described.method.add(
                name=rpc.name,
                input_type=f".{rpc.request}",
                output_type=f".{rpc.response}",
                client_streaming=rpc.client_streams,
                server_streaming=rpc.server_streams,
            )
            needed.update(found.name for kind in (rpc.request, rpc.response) if (found := self.file_with(kind)))
        file.dependency.extend(sorted(needed))
        return file


def _file_of(service: str) -> str:
    return f"{service.replace('.', '/')}.service.proto"


def _search(find: Any, name: str) -> FileDescriptor | None:
    try:
        found: FileDescriptor = find(name if name.isascii() else "")
    except KeyError:
        return None
    return found


def _proto(file: FileDescriptor) -> FileDescriptorProto:
    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    return proto


def _not_found(what: str) -> dict[str, Any]:
    return _error(_NOT_FOUND, f"not found: {what}")


def _error(code: int, text: str) -> dict[str, Any]:
    return {"error_response": {"error_code": code, "error_message": text}}
