"""Lanes that somebody watches: waits are cut into slices, so that time is seen to pass. Nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

from compass_edge.loop.events import Role
from compass_edge.loop.lanes import ROLES, Job, Lanes, Signal


class WatchedLanes:
    """`look` is called between any two waits, on the executor's thread: never in the middle of an event."""

    def __init__(self, lanes: Lanes, slice_ns: int | None = None) -> None:
        self.lanes, self._slice_ns = lanes, slice_ns
        self.since_ns = 0  # a run that is resumed goes on at the time where it was cut off
        self.look: Callable[[], None] = lambda: None

    def now_ns(self) -> int:
        return self.lanes.now_ns() + self.since_ns

    def room(self, role: Role) -> int:
        return self.lanes.room(role)

    def stuck(self, role: Role) -> bool:
        return self.lanes.stuck(role)

    def start(self, job: Job) -> None:
        self.lanes.start(job)

    def cancel(self, job: Job) -> None:
        self.lanes.cancel(job)

    def busy(self) -> dict[Role, bool]:
        return {role: self.lanes.room(role) < 1 for role in ROLES}

    def wait(self, until_ns: int | None) -> list[Signal]:
        until = None if until_ns is None else until_ns - self.since_ns
        while True:
            self.look()
            now = self.lanes.now_ns()
            ends = until if until is not None or any(self.busy().values()) else now
            if self._slice_ns is None or (ends is not None and ends - now <= self._slice_ns):
                return self.lanes.wait(until)
            signals = self.lanes.wait(now + self._slice_ns)
            if signals:
                return signals
