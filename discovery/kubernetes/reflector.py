"""Keeps a copy of the objects of one resource and namespace, and tells how it knows what changed."""

import random
import time
from collections.abc import Callable
from typing import Final, Generic

from discovery.kubernetes.batch import Batch
from discovery.kubernetes.client import Api
from discovery.kubernetes.objects import Key, Resource, T
from operator_files.follow import Freshness

ASK_AGAIN_S: Final = 5.0


class Reflector(Generic[T]):
    """Follows the objects of one resource type in one namespace (empty: all); `run` it as a task.

    `objects` is the copy, by key. `unconfirmed` are keys of which a list said something else than was known, that was
    not asked for a second time yet. `doubted`: the whole list came empty where there was something.
    """

    def __init__(
        self,
        client: Api,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        earlier_life: bool = False,
        on_batch: Callable[[Batch[T]], None],
        on_state: Callable[[], None] = lambda: None,
        on_unread: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.time,
        uniform: Callable[[float, float], float] = random.uniform,
        ask_again_s: float = ASK_AGAIN_S,
    ) -> None:
        """`earlier_life`: a store has something of these objects, so the first list is asked for a second time too.

        All callbacks run on the event loop. `on_batch` comes after `objects` has the changes; `on_state` whenever
        `freshness` changed in more than its time; `on_unread` tells of one object that is not as the API says.
        """
        self.objects: dict[Key, T] = {}
        self.unconfirmed: frozenset[Key] = frozenset()
        self.doubted = False
        self.freshness = Freshness()

    async def run(self) -> None:
        """Follows the objects until cancelled."""
        raise NotImplementedError

    def confirm_missing(self) -> frozenset[Key]:
        """An operator says that what the list lacks is gone. The keys that this confirmed."""
        raise NotImplementedError
