"""Plans that were made already, by the bytes of their request."""

from typing import Final

from ratelimit.core.plan import Plan

_SEEN: Final = 50_000
"""So many requests that came once are known by their hash, which takes about 4 MiB."""
_OF_ONE: Final = 64
"""A plan takes no more than this part of the whole."""


class Memo:
    """At most about `most_bytes` of the plans that were asked for lately.

    In two generations: the older one is dropped whole when the younger is full, and what is used moves up. Only what
    comes a second time is kept: keys that never repeat would but make the collector work.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes // 2
        self._young: dict[bytes, Plan] = {}
        self._old: dict[bytes, Plan] = {}
        self._bytes = 0
        self._seen: set[int] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, request: bytes) -> Plan | None:
        plan = self._young.get(request)
        if plan is None and (plan := self._old.pop(request, None)) is not None:
            self._keep(request, plan)
        return plan

    def put(self, request: bytes, plan: Plan) -> None:
        """Keeps it if it was put before, as far as can be told."""
        seen, mark = self._seen, hash(request)
        if mark in seen:
            seen.discard(mark)
            self._keep(request, plan)
            return
        if len(seen) >= _SEEN:
            seen.clear()
        seen.add(mark)

    def _keep(self, request: bytes, plan: Plan) -> None:
        if plan.size * _OF_ONE > self._most:
            return
        if self._bytes + plan.size > self._most:
            self._old, self._young, self._bytes = self._young, {}, 0
        self._young[request] = plan
        self._bytes += plan.size
