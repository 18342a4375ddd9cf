"""The ticks of a scripted world: live on a clock that may be virtual, or all there at once like a recording."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection

from compass_edge.loop.mark import Mark
from compass_edge.loop.ticks import Tick
from compass_edge.scripted.world import World


class ScriptedTicks:
    """With a clock a tick is there from its time of capture on. A tick that was let go is gone, as real ones are."""

    def __init__(self, world: World, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock
        period_ns = round(world.every / world.fps * 1e9)
        there = [number for number in range(world.ticks) if number not in world.missing]
        self._ticks = [
            Tick(
                Mark(number * world.every, number * period_ns),
                world.image(number),
                gap="frames were lost" if before is not None and number > before + 1 else "",
                missed=(number - before - 1) * world.every if before is not None else 0,
            )
            for before, number in zip([None, *there], there, strict=False)
        ]
        self._by_seq = {tick.mark.seq: tick for tick in self._ticks}
        self._seqs = list(self._by_seq)
        self._gone: set[int] = set()
        self._read = -1  # a recording has been read so far

    def after(self, seq: int) -> Tick | None:
        place = bisect_right(self._seqs, seq)
        tick = self._ticks[place] if place < len(self._ticks) else None
        if self._clock is not None:
            return None if tick is None or tick.mark.captured_ns > self._clock() else tick
        read = tick or (self._ticks[-1] if self._ticks else None)
        self._read = max(self._read, read.mark.seq if read else -1)
        return tick

    @property
    def over(self) -> bool:
        return self._clock is None or not self._ticks or self._ticks[-1].mark.captured_ns <= self._clock()

    def newest(self) -> Tick | None:
        if self._clock is None:
            return next((tick for tick in reversed(self._ticks) if tick.mark.seq <= self._read), None)
        now = self._clock()
        return next((tick for tick in reversed(self._ticks) if tick.mark.captured_ns <= now), None)

    def due_ns(self) -> int | None:
        if self._clock is None:
            return None
        now = self._clock()
        return next((tick.mark.captured_ns for tick in self._ticks if tick.mark.captured_ns > now), None)

    def get(self, seq: int) -> Tick:
        if seq in self._gone:
            raise KeyError(f"tick {seq} was let go")
        return self._by_seq[seq]

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:  # noqa: ARG002
        self._gone |= {seq for seq in self._seqs[: bisect_left(self._seqs, since)] if seq not in keep}
