"""What the server believes that a client has of each resource, as CSDS shows it."""

from collections.abc import Iterator
from dataclasses import dataclass

from xds.resources.resource import Resource
from xds.resources.snapshot import Layers, find
from xds.streams.status import Nack, SyncState
from xds.streams.type_state import TypeState


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """`has` is what the client has, `wanted` what it should have; None where there is nothing of that name.

    NACKED: it refused `wanted`, for the reason in `nack` if that is still known. DRAINING: it has what is to be
    removed.
    """

    type_url: str
    name: str
    state: SyncState
    has: Resource | None
    wanted: Resource | None
    sent_at: float | None
    nack: Nack | None = None


def resource_statuses(state: TypeState, target: Layers) -> Iterator[ResourceStatus]:
    """Every resource that the client is subscribed to and that there is, and every name it asked for, by name."""
    names = {*state.sub.names, *(found.name for found in state.sub.named_in(target))} - state.sub.names.collections
    if state.sub.wildcard:
        names.update(name for part in (*target, *state.base, *state.acked) for name in part.entries)
    refused = {item.resource for item in state.quarantine.bad} | state.rejected
    if state.nack is not None:
        refused.update(state.nack.resources)
    # What was sent and is not answered yet may have been taken or not.
    certain = state.acked if state.outstanding else state.base
    for name in sorted(names):
        has = None if name in state.owed else find(certain, name)
        wanted = find(target, name)
        if wanted is not None and name in refused and has != wanted:
            synced, nack = SyncState.NACKED, state.nack
        else:
            synced, nack = _state(has, wanted, find(state.base, name)), None
        yield ResourceStatus(state.type_url, name, synced, has, wanted, state.sent_at, nack)


def _state(has: Resource | None, wanted: Resource | None, sent: Resource | None) -> SyncState:
    if has is not None and has == wanted:
        return SyncState.SYNCED
    if has is not None and wanted is None:
        return SyncState.DRAINING
    return SyncState.NOT_SENT if has is None and sent is None else SyncState.STALE
