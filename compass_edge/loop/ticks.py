"""Ticks: the frames of an episode that the loop looks at, every tenth by default, by sequence number.

Live and recorded input differ only in when a tick is there. `Ticks` is what the loop reads; the ring and files behind it
are in compass_edge.loop.intake.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from compass_edge.loop.mark import Mark
from compass_edge.models import Image


@dataclass(frozen=True, slots=True)
class Tick:
    mark: Mark
    image: Image
    gap: str = ""  # why frames are missing just before this tick; empty when none are
    missed: int = 0  # how many; 0 when nobody knows


class Ticks(Protocol):
    """One episode's ticks, in order. Used by one thread; never waits."""

    def after(self, seq: int) -> Tick | None:
        """The first tick later than `seq`; None when it has not come yet, or when the stream is over."""

    @property
    def over(self) -> bool:
        """No tick will follow those that `after` has just looked through."""

    def newest(self) -> Tick | None:
        """The latest tick that is there; looks for new ones. A recording has been read just so far."""

    def due_ns(self) -> int | None:
        """When to look for the next tick, on the clock of the lanes; None when asking is what brings it."""

    def get(self, seq: int) -> Tick:
        """A tick that was given before and not let go since."""

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:
        """Frees what is older than `since` and not in `keep`. What is later than `used` only waits: it may be thinned."""
