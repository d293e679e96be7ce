"""What a reflector tells of: the objects that changed, and what it knows them from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from discovery.kubernetes.objects import Key, T


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """Changes of one moment. None: the object is gone.

    `live`: seen to happen, one event after the other. Else they are the differences of a list (the first one of a
    life, or one after history was lost), and what they take away may be wrong until it is among `confirmed`.

    `confirmed`: what an earlier batch that was not live said of these keys, a second list says too, or an operator.
    `asked_again`: that second list was complete, so what is not among the reflector's objects is not there, whatever
    an earlier life had. Both stay away while the list is wholly empty where something was: then an operator decides.
    """

    changes: Mapping[Key, T | None]
    live: bool
    confirmed: frozenset[Key] = frozenset()
    asked_again: bool = False
