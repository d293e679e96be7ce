"""What the server believes of a client, of one type: from its subscription's state to what status shows."""

from xds.resources.snapshot import Layers
from xds.streams.status import SyncState, TypeStatus
from xds.streams.type_state import TypeState


def sync_state(state: TypeState, target: Layers) -> tuple[SyncState, int]:
    """How far the client is on its way to the target, and how many resources it has that only drain."""
    if state.nack is not None:
        return SyncState.NACKED, 0
    if state.unanswered:
        return SyncState.STALE, 0
    if state.pending(target):
        changed, removed = state.changes(target)
        draining = 0 if changed or state.must_answer else len(removed)
        return (SyncState.DRAINING if draining else SyncState.STALE), draining
    if state.sent_version or state.acked_version:
        return SyncState.SYNCED, 0
    return SyncState.NOT_SENT, 0


def type_status(state: TypeState, target: Layers) -> TypeStatus:
    """Everything that is known of one type at one client."""
    progress, draining = sync_state(state, target)
    return TypeStatus(
        state.type_url,
        progress,
        _visible(state, target),
        state.sent_version,
        state.acked_version,
        state.sent_at,
        state.nack,
        draining,
        unanswered_since(state),
        tuple(sorted(item.host or item.resource for item in state.quarantine.bad)),
        sum(map(len, state.quarantine.trials)),
    )


def unanswered_since(state: TypeState) -> float | None:
    """When the oldest response that the client has not answered was sent."""
    return state.unanswered[0].at if state.unanswered else None


def _visible(state: TypeState, target: Layers) -> int:
    """How many resources of the target the client is subscribed to. Thousands of clients ask for the same names."""
    if state.sub.wildcard:
        return sum(map(len, target))
    sub = state.sub
    return state.shared.memo.get(("visible", target, sub.names), lambda: sum(1 for _ in sub.named_in(target)))
