"""Health's Watch where a host keeps calls open: one look at all of them, not a task each."""

import asyncio
from dataclasses import dataclass

from ratelimit.core.call import Status
from ratelimit.host.open_call import OpenCall
from xds.host import health
from xds.host.rpc import Ending, UnansweredError


@dataclass(slots=True)
class _Watch:
    name: str
    said: str = ""


class HealthWatches:
    """Keeps calls until they are over, or until the server's ending begins."""

    def __init__(self, of: health.Health, ending: Ending) -> None:
        self._health, self._ending = of, ending
        self._open: dict[OpenCall, _Watch] = {}
        self._next: asyncio.TimerHandle | None = None
        self._hears_of_ending = False

    def keep(self, request: bytes, call: OpenCall) -> None:
        """Says the status now, and whenever it is another."""
        try:
            watch = _Watch(health.asked(request))
        except UnansweredError as failure:
            call.fail(failure.status.value[0], str(failure))
            return
        _say(call, watch, self._health.status(watch.name))
        if self._ending.begun.done():
            self._end(call)
            return
        self._open[call] = watch
        self._schedule()
        if not self._hears_of_ending:
            self._hears_of_ending = True
            self._ending.begun.add_done_callback(self._ended)

    def __len__(self) -> int:
        return len(self._open)

    def look(self) -> None:
        """Now, not when it is time."""
        statuses = {name: self._health.status(name) for name in {watch.name for watch in self._open.values()}}
        for call, watch in list(self._open.items()):
            if call.is_over:
                del self._open[call]
            else:
                _say(call, watch, statuses[watch.name])

    def _look(self) -> None:
        self._next = None
        self.look()
        self._schedule()

    def _schedule(self) -> None:
        if self._open and self._next is None:
            self._next = asyncio.get_running_loop().call_later(health.LOOK_S, self._look)

    def _ended(self, _: "asyncio.Future[None]") -> None:
        if self._next is not None:
            self._next.cancel()
        self.look()
        for call in self._open:
            self._end(call)
        self._open.clear()

    def _end(self, call: OpenCall) -> None:
        if not call.is_over:
            call.fail(Status.UNAVAILABLE, self._ending.reason or "")


def _say(call: OpenCall, watch: _Watch, status: str) -> None:
    """Where the call does not take it, the next look says what is true then."""
    if status != watch.said and call.send(health.encoded(status)):
        watch.said = status
