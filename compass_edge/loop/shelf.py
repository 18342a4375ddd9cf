"""The shelf: the ticks that are there, their pictures in a FrameStore planned at opening.

What the loop has used stays until it lets go of it. What is later only waits, whoever has looked at it: when too much
waits, every second tick of it is dropped, and its successor says so. That happens in `place(thin=True)` and in `let_go`,
never while somebody looks: see LiveTicks for when those are called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from compass_edge.errors import UsageError
from compass_edge.frames.native import native
from compass_edge.loop.sampler import Sampled, SamplerStats
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick
from compass_edge.models import Image

if TYPE_CHECKING:
    from compass_edge._native import Frame, FrameStore

_SPARE = 16  # the few that a step names beside its clip, and frames let go while a model still looks at them
_Told = TypeVar("_Told", Tick, Sampled)


@dataclass(frozen=True, slots=True)
class IntakeStats:
    frames: SamplerStats
    dropped: int  # ticks that waited too long, behind too many others
    refused: int  # ticks that found no room
    kept: int  # ticks that are there now
    bytes: int  # planned at opening


def frame_digest(frame: Frame) -> str:
    """A hash of what can be seen: the same picture has the same one in any slot, with any row padding."""
    about = f"{frame.format} {frame.width}x{frame.height} {frame.matrix} {frame.range}"
    hashed = hashlib.blake2b(about.encode(), digest_size=16)
    for plane in frame.planes:
        hashed.update(np.ascontiguousarray(plane).data)
    return hashed.hexdigest()


class Shelf:
    """Frame n of the ring is frame `numbered_from` + n of the episode; the store goes by the ring's own numbers."""

    def __init__(
        self, frame_bytes: int, settings: Settings, backlog: int, max_bytes: int, numbered_from: int = 0
    ) -> None:
        if backlog < 1:
            raise UsageError(f"The backlog must be at least 1 tick, and {backlog} came.")
        # What State.keeps() asks for at most: a clip, and every tick since the peak that may become a candidate.
        kept = settings.max_frames + settings.candidate.peak_memory
        wanted = kept + backlog + _SPARE
        store: FrameStore = native().FrameStore(frame_bytes, max_frames=wanted, max_bytes=max_bytes)
        if store.max_frames < wanted:
            raise UsageError(
                f"{wanted} frames of {frame_bytes} bytes are to be held (max_frames, candidate.peak_memory, the backlog and "
                f"{_SPARE} more), and max_bytes = {max_bytes} is enough for {store.max_frames}. Lower one of them, or raise "
                "max_bytes."
            )
        self.capacity = wanted
        self.last = -1  # the latest tick that was ever placed
        self._store, self._backlog, self._numbered_from = store, backlog, numbered_from
        self._ticks: dict[int, Tick] = {}  # rising
        self._used = -1
        self._lost: Sampled | None = None  # just before the next tick
        self._dropped = self._refused = 0

    def stats(self, frames: SamplerStats) -> IntakeStats:
        return IntakeStats(frames, self._dropped, self._refused, len(self._ticks), self._store.stats["bytes"])

    def place(self, sampled: Sampled, frame: Frame, *, thin: bool = False) -> bool:
        """False when there is no room; with `thin`, not even after thinning those that wait."""
        if not self._store.keep(frame) and not (thin and self._thin() and self._store.keep(frame)):
            return False
        pixels = self._store.get(frame.seq)
        if pixels is None:
            raise RuntimeError("A frame store has lost the frame that it has just kept.")
        if self._lost is not None:
            sampled = _after_loss(sampled, self._lost, "no room to keep a frame")
            self._lost = None
        self.last = sampled.mark.seq
        self._ticks[self.last] = Tick(sampled.mark, Image(frame_digest(pixels), pixels), sampled.gap, sampled.missed)
        if thin:
            self._thin_backlog()
        return True

    def lose(self, sampled: Sampled) -> None:
        """There was no room for it: the next tick says so."""
        self._refused += 1
        self._lost = sampled if self._lost is None else _after_loss(sampled, self._lost, "no room to keep a frame")

    def last_lost(self) -> Sampled | None:
        """What was lost since the last tick that was placed, to be tried once more."""
        lost, self._lost = self._lost, None
        self._refused -= lost is not None
        return lost

    def after(self, seq: int) -> Tick | None:
        return next((tick for number, tick in self._ticks.items() if number > seq), None)

    def newest(self) -> Tick | None:
        return next(reversed(self._ticks.values()), None)

    def get(self, seq: int) -> Tick:
        if seq not in self._ticks:
            raise UsageError(f"Tick {seq} is not there: it was never given, or it was let go.")
        return self._ticks[seq]

    def let_go(self, keep: Collection[int], since: int, used: int, *, thin: bool = False) -> None:
        """`used` may go back: a step that was completed at an earlier frame leaves those after it to the next step."""
        self._used = used
        for seq in [seq for seq in self._ticks if seq < since and seq not in keep]:
            self._drop(seq)
        if thin:
            self._thin_backlog()

    def pass_over(self, seqs: range) -> bool:
        """Lets go of those among them, which nobody will ask for. False when there are none."""
        passed = [seq for seq in self._ticks if seq in seqs]
        for seq in passed:
            self._drop(seq)
        return bool(passed)

    def _waiting(self) -> list[int]:
        return [seq for seq in self._ticks if seq > self._used]

    def _drop(self, seq: int) -> None:
        del self._ticks[seq]
        self._store.drop(seq - self._numbered_from)

    def _thin_backlog(self) -> None:
        while len(self._waiting()) > self._backlog and self._thin():
            pass

    def _thin(self) -> bool:
        """Drops every second tick that waits, never the newest. Each one's successor says so."""
        waiting = self._waiting()
        doomed = waiting[-2::-2]
        for seq, heir in zip(doomed, waiting[::-2], strict=False):
            self._ticks[heir] = _after_loss(self._ticks[heir], self._ticks[seq], "the loop fell behind")
            self._drop(seq)
        self._dropped += len(doomed)
        return bool(doomed)


def _after_loss(kept: _Told, lost: Tick | Sampled, why: str) -> _Told:
    """The tick that now follows the gap: all frames from the lost one on are missing, and what that one missed itself."""
    reasons = dict.fromkeys(reason for gap in (lost.gap, kept.gap) for reason in gap.split("; ") if reason)
    known = all(one.missed or not one.gap for one in (lost, kept))
    missed = lost.missed + kept.mark.seq - lost.mark.seq if known else 0
    return replace(kept, gap="; ".join({**reasons, why: None}), missed=missed)
