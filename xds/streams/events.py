"""What happens on streams, told as it happens, for logs and metrics."""

from typing import NamedTuple

from xds.resources.node import Node
from xds.streams.status import Nack


class Identified(NamedTuple):
    """A client's first request said who it is."""

    node: Node
    variant: str
    peer: str


class Pushed(NamedTuple):
    """A response was handed to the host. `size` in bytes; `origin`: when its cause happened, in unix seconds."""

    node: Node
    type_url: str
    version: str
    changed: int
    removed: int
    size: int
    origin: float = 0.0


class Acked(NamedTuple):
    """`seconds` from sending to the ACK; `since_change` from the event that caused the response.

    `origins`: when the causes of all the responses that it answers happened, in unix seconds.
    """

    node: Node
    type_url: str
    version: str
    seconds: float
    since_change: float
    origins: tuple[float, ...] = ()


class Nacked(NamedTuple):
    """`culprits` are the resources now known to be the reason; empty while they are being looked for."""

    node: Node
    type_url: str
    nack: Nack
    culprits: tuple[str, ...] = ()
    origins: tuple[float, ...] = ()


class Waited(NamedTuple):
    """Listeners or routes that waited for clusters to be warm may now go ahead, all of them."""

    node: Node
    type_url: str
    seconds: float


class Changed(NamedTuple):
    """Views may have changed, by what happened at `origin` (unix seconds); streams are told now."""

    origin: float


class Closed(NamedTuple):
    """The stream is over. `node` is None if the client never said who it is.

    `unanswered`: of the responses that it leaves unanswered, the type, and when the cause happened.
    """

    node: Node | None
    seconds: float
    reason: str
    unanswered: tuple[tuple[str, float], ...] = ()


class Refused(NamedTuple):
    """More streams wanted to begin at once than are admitted."""

    peer: str


class Failed(NamedTuple):
    """A bug of ours ended a stream."""

    node: Node | None
    error: Exception


Event = Identified | Pushed | Acked | Nacked | Waited | Changed | Closed | Refused | Failed
