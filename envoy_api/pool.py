"""Message classes by type name, built when first asked for, in a pool of their own."""

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files as resource_files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from envoy_api.files import Files
from envoy_api.schema import ROOT

if TYPE_CHECKING:

    class EnvoyMessage(Message):
        """A message of this API, for the type checker.

        Which fields it has is known at run time only (an unknown one raises AttributeError or ValueError there), so
        they are Any, deliberately; that something is a message at all is still checked.
        """

        def __init__(self, **fields: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

else:
    EnvoyMessage = Message

TYPE_URL_PREFIX = "type.googleapis.com/"
_ANY = "google.protobuf.Any"

pool = DescriptorPool(Files())
"""Private: the default pool belongs to whatever else uses protobuf in the process, perhaps with other versions of the
same types."""


class UnknownTypeError(KeyError):
    """No message of that name in Envoy's API, as far as the installed envoy-data-plane knows it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    @property
    def suggestion(self) -> str | None:
        """The known name that is most like it, if any is; found when asked, for it takes tens of milliseconds."""
        return next(iter(get_close_matches(self.name, all_type_names(), n=1, cutoff=0.8)), None)

    def __str__(self) -> str:
        hint = f", did you mean {self.suggestion}?" if self.suggestion else ""
        return f"no message type {self.name!r} in Envoy's API{hint}"


@cache
def message_class(full_name: str) -> type[EnvoyMessage]:
    """The class of `envoy.config.cluster.v3.Cluster`, `google.protobuf.Any`, …

    Built at the first call, with what it refers to. Raises UnknownTypeError (a KeyError).
    """
    try:
        descriptor = pool.FindMessageTypeByName(full_name if full_name.isascii() else "")
    except KeyError:
        raise UnknownTypeError(full_name) from None
    return cast("type[EnvoyMessage]", GetMessageClass(descriptor))


def class_for_url(type_url: str) -> type[EnvoyMessage]:
    """The class of `type.googleapis.com/envoy.config.cluster.v3.Cluster`: what follows the last slash names it.

    Raises UnknownTypeError.
    """
    return message_class(type_url.rpartition("/")[2])


def message(full_name: str, /, **fields: Any) -> EnvoyMessage:
    """A new message. Sub-messages may be given as dicts, enums by name, durations as timedelta.

    Raises UnknownTypeError, ValueError for an unknown field or enum name, TypeError for a value of the wrong type.
    """
    return message_class(full_name)(**fields)


def encode(value: Message) -> bytes:
    """The message's bytes; the same message gives the same bytes in every process."""
    return value.SerializeToString(deterministic=True)


def descriptor_of(value: Message | type[Message]) -> Descriptor:
    """The descriptor of a message or class (types-protobuf has it as one of two types)."""
    return cast("Descriptor", value.DESCRIPTOR)


def type_url(value: Message | type[Message]) -> str:
    """The URL under which an Any or a discovery request names a message's type."""
    return TYPE_URL_PREFIX + descriptor_of(value).full_name


def pack(value: Message) -> EnvoyMessage:
    """A google.protobuf.Any that holds the message."""
    return message_class(_ANY)(type_url=type_url(value), value=encode(value))


def unpack(any_message: EnvoyMessage) -> EnvoyMessage:
    """The message inside a google.protobuf.Any.

    Raises UnknownTypeError, and google.protobuf.message.DecodeError for damaged bytes.
    """
    inner = class_for_url(any_message.type_url)()
    inner.ParseFromString(any_message.value)
    return inner


_REGISTRATION = re.compile(r'register_message\(\s*"([\w.]+)",\s*"([\w.]+)"')


@cache
def all_type_names() -> tuple[str, ...]:
    """The full names of all messages (about 2,000), sorted.

    Read from the modules' text: importing them all takes more than a second and 30 MB.
    """
    root = resource_files(ROOT)
    assert isinstance(root, Path)
    return tuple(
        sorted(
            f"{package}.{name}"
            for path in root.rglob("*.py")
            for package, name in _REGISTRATION.findall(path.read_text(encoding="utf-8"))
        )
    )
