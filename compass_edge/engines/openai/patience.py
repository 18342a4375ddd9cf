"""How long a call may still take: until its deadline, or until nobody waits for it any more."""

from __future__ import annotations

import time

from compass_edge.errors import CompassError
from compass_edge.models import Cancelled

# Whoever waits for a socket or for its turn looks up after so long.
POLL_S = 0.05


class Stopped(Exception):
    """Nobody waits any more. It never leaves the engine."""


class OutOfTime(CompassError):
    """The deadline of the whole call has passed."""


class Patience:
    """Of one call, retries and all. The deadline is absolute: a server that sends a byte a minute does not move it."""

    def __init__(self, seconds: float, cancelled: Cancelled) -> None:
        self._seconds, self._cancelled = seconds, cancelled
        self._until = time.monotonic() + seconds
        self.doing = "waiting for its turn"

    @property
    def left_s(self) -> float:
        return self._until - time.monotonic()

    def look(self) -> float:
        """Seconds that may be waited before the next look. Raises when it is over."""
        if self._cancelled():
            raise Stopped
        if (left := self.left_s) <= 0:
            raise OutOfTime(f"was to answer within {self._seconds:g} s, and that time passed while {self.doing}")
        return min(left, POLL_S)

    def rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(self.look(), left))
