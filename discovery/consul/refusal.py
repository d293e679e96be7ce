"""Why an instance is not used."""

from typing import NamedTuple

from discovery.left_out import Reason


class Refusal(NamedTuple):
    """The reason's word, and a sentence for the operator."""

    reason: Reason
    detail: str
