"""The intake: ticks from a recording, which is read as far as it is asked for, or from a ring that others fill.

ticks = RecordedTicks(open_source("episode.mp4"))
ticks = LiveTicks(ring)                   # the host pushes frames, and calls end() after the last one

Both cut the stream by the same Sampler, so that the same frames give the same ticks. A tick's picture is a copy in a
FrameStore planned at opening: neither holds a slot of the ring for longer than the copy takes.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.native import native
from compass_edge.frames.source import Source
from compass_edge.loop.sampler import Sampled, Sampler, SamplerStats
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick
from compass_edge.models import Image

if TYPE_CHECKING:
    from compass_edge._native import Frame, FrameRing, FrameStore

_SPARE = 16  # the few that a step names beside its clip, and frames let go while a model still looks at them
_LOOK_AGAIN_NS = 5_000_000
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


def open_ticks(
    source: Source, settings: Settings | None = None, *, backlog: int = 64, max_bytes: int = 1 << 30
) -> RecordedTicks | LiveTicks:
    """A live source's ticks come by themselves once it is started; a recording's when they are asked for."""
    if source.info.live:
        return LiveTicks(source.ring, settings, source=source, backlog=backlog, max_bytes=max_bytes)
    return RecordedTicks(source, settings, backlog=backlog, max_bytes=max_bytes)


class RecordedTicks:
    """Ticks of a source that is stepped, by nobody else meanwhile.

    `backlog` is how many ticks the loop may look ahead, beside those that its settings make it keep.
    """

    def __init__(
        self, source: Source, settings: Settings | None = None, *, backlog: int = 64, max_bytes: int = 1 << 30
    ) -> None:
        settings = settings or Settings()
        self.failure = ""  # why the recording could not be read on
        self._source = source
        self._sampler = Sampler(settings.every)
        self._shelf = _Shelf(source.ring.frame_bytes, settings, backlog, max_bytes)
        self._sampled: Sampled | None = None  # not on the shelf yet
        self._ended = False

    def after(self, seq: int) -> Tick | None:
        while (tick := self._shelf.after(seq)) is None and not self.over:
            if self._sampled is None:
                self._sampled = self._read()
            if self._sampled is not None:
                self._place(self._sampled)
                self._sampled = None
        return tick

    @property
    def over(self) -> bool:
        return self._ended and self._sampled is None

    def newest(self) -> Tick | None:
        return self._shelf.newest()

    def due_ns(self) -> int | None:
        return None

    def get(self, seq: int) -> Tick:
        return self._shelf.get(seq)

    def let_go(self, keep: Collection[int], since: int) -> None:
        self._shelf.let_go(keep, since)

    @property
    def stats(self) -> IntakeStats:
        return self._shelf.stats(self._sampler.stats)

    def _read(self) -> Sampled | None:
        try:
            frame = self._source.step()
        except UsageError:
            raise
        except CompassError as error:
            self.failure = str(error)
            frame = None
        if frame is None:
            self._ended = True
            return self._sampler.end()
        with frame:
            return self._sampler.offer(frame.seq, frame.captured_ns, frame.gap_before)

    def _place(self, sampled: Sampled) -> None:
        frame = self._source.latest()
        if frame is None or frame.seq != sampled.mark.seq:
            raise UsageError("A recording's ticks need its source for themselves, and somebody else has stepped it.")
        with frame:
            if not self._shelf.place(sampled, frame):
                raise UsageError(
                    f"All {self._shelf.capacity} frames that may be held are in use: let go of earlier ticks, or open the "
                    "ticks with a larger backlog."
                )


class LiveTicks:
    """Ticks of a ring that a camera's thread or the host fills. Nothing here waits.

    The loop must come by before the ring overwrites what is new, every `ring.history` frames at least; what it misses is
    told with the next tick. So are ticks that are dropped, every second one, because more than `backlog` are waiting that
    the loop has not seen. An executor should look ahead no further than the backlog: with no room left, new ticks are
    lost in a row. The stream begins with the ring's newest frame at opening, or with frame `since`.
    """

    def __init__(
        self,
        ring: FrameRing,
        settings: Settings | None = None,
        *,
        source: Source | None = None,
        since: int | None = None,
        backlog: int = 64,
        max_bytes: int = 1 << 30,
    ) -> None:
        settings = settings or Settings()
        self.failure = ""  # why the source broke off
        self._source = source
        self._clock: Callable[[], int] = native().monotonic_ns
        self._sampler = Sampler(settings.every)
        self._shelf = _Shelf(ring.frame_bytes, settings, backlog, max_bytes)
        self._reader = ring.reader(1)
        self._next = max(self._newest_seq(), 0) if since is None else since
        self._ended = threading.Event()
        self._sampled: Sampled | None = None  # the last frame, not on the shelf yet
        self._over = False

    def end(self) -> None:
        """No frame will follow. Any thread; what was pushed before still counts."""
        self._ended.set()

    def pump(self) -> None:
        """Takes in the frames that have come."""
        if self._over:
            return
        ended = self._is_ended()  # asked first: whatever came before the end is in the ring by now
        newest = self._newest_seq()  # a writer faster than this loop must not keep it here
        while not self._sampled and self._next <= newest and (frame := self._reader.next(self._next)) is not None:
            with frame:
                self._next = frame.seq + 1
                sampled = self._sampler.offer(frame.seq, frame.captured_ns, frame.gap_before)
                if sampled is not None and not self._shelf.place(sampled, frame, thin=True):
                    self._shelf.lose(sampled)
        if ended:
            self._finish()

    def after(self, seq: int) -> Tick | None:
        self.pump()
        return self._shelf.after(seq)

    @property
    def over(self) -> bool:
        """Said of what `after` and `newest` have last looked at, so that no tick slips in between; then looks again."""
        over = self._over
        self.pump()
        return over

    def newest(self) -> Tick | None:
        return self._shelf.newest()

    def due_ns(self) -> int | None:
        return self._clock() + _LOOK_AGAIN_NS

    def get(self, seq: int) -> Tick:
        return self._shelf.get(seq)

    def let_go(self, keep: Collection[int], since: int) -> None:
        self._shelf.let_go(keep, since)

    @property
    def stats(self) -> IntakeStats:
        return self._shelf.stats(self._sampler.stats)

    def _is_ended(self) -> bool:
        state = "running" if self._source is None else self._source.state
        if self._source is not None and state == "failed":
            self.failure = self._source.failure
        return state in ("ended", "failed") or self._ended.is_set()

    def _newest_seq(self) -> int:
        frame = self._reader.latest()
        if frame is None:
            return -1
        with frame:
            return frame.seq

    def _finish(self) -> None:
        self._sampled = self._sampled or self._sampler.end() or self._shelf.last_lost()
        if self._sampled is not None:
            frame = self._reader.get(self._sampled.mark.seq)
            if frame is None:  # the host goes on pushing after the end
                self._shelf.lose(self._sampled)
            else:
                with frame:
                    if not self._shelf.place(self._sampled, frame, thin=True):
                        return  # the loop will have let go of something when it comes again
        self._sampled, self._over = None, True
        self._reader.close()


class _Shelf:
    """The ticks that are there. Those that the loop has seen stay until it lets go of them."""

    def __init__(self, frame_bytes: int, settings: Settings, backlog: int, max_bytes: int) -> None:
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
        self._store, self._backlog = store, backlog
        self._ticks: dict[int, Tick] = {}  # rising
        self._seen: set[int] = set()  # of them
        self._lost: Sampled | None = None  # just before the next tick
        self._dropped = self._refused = 0

    def stats(self, frames: SamplerStats) -> IntakeStats:
        return IntakeStats(frames, self._dropped, self._refused, len(self._ticks), self._store.stats["bytes"])

    def place(self, sampled: Sampled, frame: Frame, *, thin: bool = False) -> bool:
        """False when there is no room, even after thinning those that wait."""
        if not self._store.keep(frame) and not (thin and self._thin() and self._store.keep(frame)):
            return False
        pixels = self._store.get(frame.seq)
        if pixels is None:
            raise RuntimeError("A frame store has lost the frame that it has just kept.")
        if self._lost is not None:
            sampled = _after_loss(sampled, self._lost, "no room to keep a frame")
            self._lost = None
        self._ticks[frame.seq] = Tick(sampled.mark, Image(frame_digest(pixels), pixels), sampled.gap, sampled.missed)
        if thin and len(self._ticks) - len(self._seen) > self._backlog:
            self._thin()
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
        return self._show(next((tick for number, tick in self._ticks.items() if number > seq), None))

    def newest(self) -> Tick | None:
        return self._show(next(reversed(self._ticks.values()), None))

    def get(self, seq: int) -> Tick:
        if seq not in self._ticks:
            raise UsageError(f"Tick {seq} is not there: it was never given, or it was let go.")
        return self._ticks[seq]

    def let_go(self, keep: Collection[int], since: int) -> None:
        for seq in [seq for seq in self._ticks if seq < since and seq not in keep]:
            self._drop(seq)

    def _show(self, tick: Tick | None) -> Tick | None:
        if tick is not None:
            self._seen.add(tick.mark.seq)
        return tick

    def _drop(self, seq: int) -> None:
        del self._ticks[seq]
        self._seen.discard(seq)
        self._store.drop(seq)

    def _thin(self) -> bool:
        """Drops every second tick that waits, never the newest. Each one's successor says so."""
        waiting = [seq for seq in self._ticks if seq not in self._seen]
        doomed = waiting[-2::-2]
        for seq in reversed(doomed):
            lost = self._ticks[seq]
            heir = next(tick for number, tick in self._ticks.items() if number > seq)
            self._ticks[heir.mark.seq] = _after_loss(heir, lost, "the loop fell behind")
            self._drop(seq)
        self._dropped += len(doomed)
        return bool(doomed)


def _after_loss(kept: _Told, lost: Tick | Sampled, why: str) -> _Told:
    """The tick that now follows the gap: all frames from the lost one on are missing, and what that one missed itself."""
    reasons = dict.fromkeys(reason for gap in (lost.gap, kept.gap) for reason in gap.split("; ") if reason)
    known = all(one.missed or not one.gap for one in (lost, kept))
    missed = lost.missed + kept.mark.seq - lost.mark.seq if known else 0
    return replace(kept, gap="; ".join({**reasons, why: None}), missed=missed)
