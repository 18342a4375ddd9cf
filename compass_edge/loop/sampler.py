"""The sampler: which frames of a stream are ticks. By their numbers alone, so that live and recorded input agree.

The stream is cut into cells of `every` frames, counted from its first one; the first frame that comes in a cell is the
cell's tick. Frames that are missing inside a cell are counted and change nothing else. A cell that passed without a tick,
and a gap that the source reports, are told with the next tick.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compass_edge.errors import UsageError
from compass_edge.loop.mark import Mark


@dataclass(frozen=True, slots=True)
class Sampled:
    """A frame that is a tick."""

    mark: Mark
    gap: str = ""  # why frames are missing since the tick before; empty when the curve may go on
    missed: int = 0  # how many; 0 when nobody knows


@dataclass(frozen=True, slots=True)
class SamplerStats:
    """offered = taken + duplicates + late, and the stream's first to last number = taken + missing."""

    offered: int = 0
    ticks: int = 0
    duplicates: int = 0  # came twice in a row
    late: int = 0  # came after a later one: dropped
    clock_back: int = 0  # captured before the frame before it, by their times: taken all the same
    missing: int = 0  # numbers that were passed over

    @property
    def taken(self) -> int:
        return self.offered - self.duplicates - self.late


class Sampler:
    """Pure: no clock, no pixels."""

    def __init__(self, every: int) -> None:
        if every < 1:
            raise UsageError(f"A tick is the first frame of each run of `every`, at least 1, and {every!r} came.")
        self.every = every
        self._stats = SamplerStats()
        self._first = 0
        self._last: Mark | None = None
        self._tick = -1  # the number of the last tick
        self._missing = 0  # since the last tick
        self._reported = False  # by the source, since the last tick

    @property
    def stats(self) -> SamplerStats:
        return self._stats

    def offer(self, seq: int, captured_ns: int, gap_before: bool = False) -> Sampled | None:
        """The frame as a tick, or None when it is not one."""
        self._count(offered=1)
        last = self._last
        if last is None:
            self._first = seq
        elif seq <= last.seq:
            self._count(duplicates=int(seq == last.seq), late=int(seq < last.seq))
            return None
        else:
            missing = seq - last.seq - 1
            self._missing += missing
            self._count(missing=missing, clock_back=int(captured_ns < last.captured_ns))
        self._last = Mark(seq, captured_ns)
        self._reported |= gap_before
        if self._tick < 0 or self._cell(seq) > self._cell(self._tick):
            return self._sample(self._last)
        return None

    def end(self) -> Sampled | None:
        """The stream is over: its last frame, when it is not a tick yet."""
        if self._last is None or self._last.seq == self._tick:
            return None
        return self._sample(self._last)

    def _sample(self, mark: Mark) -> Sampled:
        skipped = self._tick >= 0 and self._cell(mark.seq) > self._cell(self._tick) + 1
        reasons = [
            text for told, text in ((skipped, "frames never came"), (self._reported, "the source lost frames")) if told
        ]
        missed = self._missing if skipped and not self._reported else 0
        self._tick, self._missing, self._reported = mark.seq, 0, False
        self._count(ticks=1)
        return Sampled(mark, "; ".join(reasons), missed)

    def _cell(self, seq: int) -> int:
        return (seq - self._first) // self.every

    def _count(self, **more: int) -> None:
        self._stats = replace(self._stats, **{name: getattr(self._stats, name) + n for name, n in more.items()})
