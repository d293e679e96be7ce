"""Reflection beside a service whose calls wait meanwhile."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from swashplate.rate_limit_services import SHOULD_RATE_LIMIT
from xds.host.grpc_messages import message_class
from xds.host.reflection import METHODS, Reflection
from xds.host.rpc import Ending

BOOTSTRAP = "envoy.config.bootstrap.v3.Bootstrap"


async def test_files_are_gathered_once_however_often_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reflection = Reflection([SHOULD_RATE_LIMIT], Ending())
    (rpc, *_), gathered = METHODS, list[str]()
    gather = reflection._with_imports

    def counted(file: FileDescriptorProto) -> Iterator[FileDescriptorProto]:
        gathered.append(file.name)
        return gather(file)

    monkeypatch.setattr(reflection, "_with_imports", counted)
    request = message_class(rpc.request)(file_containing_symbol=BOOTSTRAP).SerializeToString()
    answers = {reflection.answer(rpc, request) for _ in range(3)}
    assert len(answers) == len(gathered) == 1
    files = message_class(rpc.response).FromString(answers.pop()).file_descriptor_response.file_descriptor_proto
    assert len(files) > 10
