"""What the server believes of each client: the values that status, metrics and the admin API show."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Nack:
    """A rejected response: the client's own words, and what was in it. `at` is in unix seconds."""

    message: str
    version: str
    resources: tuple[str, ...]
    at: float


class SyncState(StrEnum):
    """As `istioctl proxy-status` and CSDS name them, and DRAINING."""

    SYNCED = "synced"
    DRAINING = "draining"
    STALE = "stale"
    NOT_SENT = "not sent"
    NACKED = "nacked"


@dataclass(frozen=True, slots=True)
class TypeStatus:
    """One type's subscription on one stream.

    STALE: something sent or due is not acknowledged yet. DRAINING: all of the target is acknowledged, and the
    client still has more, which is removed when it has drained. NOT_SENT: subscribed, and nothing to send so far.
    NACKED: the client rejected what it was last sent and keeps what it had. `resources` counts what of the target it
    is subscribed to, `draining` what else it has. `unanswered_since`: when the oldest response without an answer was
    sent. `quarantined` names the resources, or virtual hosts, that are kept back because the client refused them, and
    `suspects` counts those among which the reason of a refusal is still being looked for. Versions are the types'
    own (see Snapshot.version); times are unix seconds.
    """

    type_url: str
    state: SyncState
    resources: int
    sent_version: str
    acked_version: str
    sent_at: float | None
    nack: Nack | None
    draining: int = 0
    unanswered_since: float | None = None
    quarantined: tuple[str, ...] = ()
    suspects: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Of a type, something waits at the gate since then (unix seconds), for these clusters to be warm.

    `clusters` is empty where it waits for the client to ask for its clusters at all.
    """

    type_url: str
    since: float
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lingering:
    """A cluster that is gone from the target.

    `until`: when it is removed from the client, in unix seconds; None while the client may have something that refers
    to it.
    """

    name: str
    until: float | None


@dataclass(frozen=True, slots=True)
class RolloutStatus:
    """Where a client is between what it had and the target."""

    waiting: tuple[Waiting, ...] = ()
    lingering: tuple[Lingering, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One stream. A client that uses single-type streams appears once for each of them."""

    node_id: str
    node_cluster: str
    user_agent: str
    variant: str
    peer: str
    connected_at: float
    types: tuple[TypeStatus, ...]
    rollout: RolloutStatus = RolloutStatus()
