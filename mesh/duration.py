"""Durations with three states: absent (None: the default), a value, or OFF (`infinity` in a file).

A value of zero does not exist here, because Envoy reads zero as "no timeout" (Contour's timeout.Setting).
"""

from datetime import timedelta
from enum import Enum
from typing import Final


class Off(Enum):
    """No limit at all; its one member is OFF."""

    OFF = "infinity"


OFF: Final = Off.OFF

Timeout = timedelta | Off
"""A positive duration, or OFF."""
