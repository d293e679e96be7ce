"""The messages of gRPC's own health and reflection services, which Envoy's API does not have.

Described here field by field, from grpc-proto's grpc/health/v1/health.proto and grpc/reflection/v1/reflection.proto
(v1alpha's differs in its package only), in a pool of their own.
"""

from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

HEALTH: Final = "grpc.health.v1"
REFLECTION: Final = ("grpc.reflection.v1", "grpc.reflection.v1alpha")

_Field = pb.FieldDescriptorProto
_SCALARS: Final = {"string": _Field.TYPE_STRING, "int32": _Field.TYPE_INT32, "bytes": _Field.TYPE_BYTES}


def _message(name: str, *fields: str, oneof: str = "") -> pb.DescriptorProto:
    """Fields as proto files write them: `repeated string name = 1`; those with `|` in front are of the oneof."""
    made = pb.DescriptorProto(name=name)
    if oneof:
        made.oneof_decl.add(name=oneof)
    for text in fields:
        kind, field_name, _, number = text.removeprefix("|").removeprefix("repeated ").split()
        field = made.field.add(name=field_name, number=int(number), label=_Field.LABEL_OPTIONAL)
        if text.startswith("repeated "):
            field.label = _Field.LABEL_REPEATED
        if text.startswith("|"):
            field.oneof_index = 0
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type_name = kind
    return made


def _health() -> pb.FileDescriptorProto:
    response = _message("HealthCheckResponse", "ServingStatus status = 1")
    statuses = pb.EnumDescriptorProto(name="ServingStatus")
    for number, name in enumerate(("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")):
        statuses.value.add(name=name, number=number)
    response.enum_type.append(statuses)
    file = pb.FileDescriptorProto(name="grpc/health/v1/health.proto", package=HEALTH, syntax="proto3")
    file.message_type.extend([_message("HealthCheckRequest", "string service = 1"), response])
    return file


def _reflection(package: str) -> pb.FileDescriptorProto:
    name = f"{package.replace('.', '/')}/reflection.proto"
    file = pb.FileDescriptorProto(name=name, package=package, syntax="proto3")
    file.message_type.extend(
        [
            _message(
                "ServerReflectionRequest",
                "string host = 1",
                "|string file_by_filename = 3",
                "|string file_containing_symbol = 4",
                "|ExtensionRequest file_containing_extension = 5",
                "|string all_extension_numbers_of_type = 6",
                "|string list_services = 7",
                oneof="message_request",
            ),
            _message("ExtensionRequest", "string containing_type = 1", "int32 extension_number = 2"),
            _message(
                "ServerReflectionResponse",
                "string valid_host = 1",
                "ServerReflectionRequest original_request = 2",
                "|FileDescriptorResponse file_descriptor_response = 4",
                "|ExtensionNumberResponse all_extension_numbers_response = 5",
                "|ListServiceResponse list_services_response = 6",
                "|ErrorResponse error_response = 7",
                oneof="message_response",
            ),
            _message("FileDescriptorResponse", "repeated bytes file_descriptor_proto = 1"),
            _message("ExtensionNumberResponse", "string base_type_name = 1", "repeated int32 extension_number = 2"),
            _message("ListServiceResponse", "repeated ServiceResponse service = 1"),
            _message("ServiceResponse", "string name = 1"),
            _message("ErrorResponse", "int32 error_code = 1", "string error_message = 2"),
        ]
    )
    return file


@cache
def pool() -> DescriptorPool:
    """All of them."""
    made = DescriptorPool()
    for file in (_health(), *map(_reflection, REFLECTION)):
        made.Add(file)
    return made


def message_class(full_name: str) -> Any:
    """A message's class; what fields it has is known at run time only."""
    return GetMessageClass(pool().FindMessageTypeByName(full_name))
