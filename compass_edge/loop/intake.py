"""The intake: ticks from a recording, which is read as far as it is asked for, or from a ring that others fill.

ticks = RecordedTicks(open_source("episode.mp4"))
ticks = LiveTicks(ring)                   # the host pushes frames, and calls end() after the last one

Both cut the stream by the same Sampler, so that the same frames give the same ticks. A tick's picture is a copy in the
shelf's store: neither holds a slot of the ring for longer than the copy takes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.native import native
from compass_edge.frames.source import Source
from compass_edge.loop.sampler import Sampled, Sampler
from compass_edge.loop.settings import Settings
from compass_edge.loop.shelf import IntakeStats, Shelf
from compass_edge.loop.ticks import Tick

if TYPE_CHECKING:
    from compass_edge._native import Frame, FrameRing

LOOKAHEAD = 64  # ticks of a recording
BACKLOG = 192  # ticks of a live stream: a minute at three a second
_LOOK_AGAIN_NS = 5_000_000
_USUAL_RATE = 30.0  # of a recording that says neither its rate nor its frames' times


def open_ticks(
    source: Source, settings: Settings | None = None, *, backlog: int | None = None, max_bytes: int = 2 << 30
) -> RecordedTicks | LiveTicks:
    """A live source's ticks come by themselves once it is started; a recording's when they are asked for."""
    if source.info.live:
        return LiveTicks(source.ring, settings, source=source, backlog=backlog or BACKLOG, max_bytes=max_bytes)
    return RecordedTicks(source, settings, backlog=backlog or LOOKAHEAD, max_bytes=max_bytes)


class RecordedTicks:
    """Ticks of a source that is stepped, by nobody else meanwhile.

    `backlog` is how many ticks the loop may look ahead, beside those that its settings make it keep. A mark's time is a
    recording's time, not the clock's: where the frame stands in the file, so that every run gives the same events.
    """

    def __init__(
        self, source: Source, settings: Settings | None = None, *, backlog: int = LOOKAHEAD, max_bytes: int = 2 << 30
    ) -> None:
        settings = settings or Settings()
        self.failure = ""  # why the recording could not be read on, or that it was cut off
        self._source = source
        self._sampler = Sampler(settings.every)
        self._shelf = Shelf(source.ring.frame_bytes, settings, backlog, max_bytes)
        self._sampled: Sampled | None = None  # not on the shelf yet
        self._period_ns = round(1e9 / (source.info.frame_rate or _USUAL_RATE))
        self._time_ns = -self._period_ns  # of the last frame
        self._ended = False

    def after(self, seq: int) -> Tick | None:
        new = self._shelf.last + 1
        while (tick := self._shelf.after(seq)) is None and not self.over:
            if self._sampled is None:
                self._sampled = self._read()
            if self._sampled is not None:
                self._place(self._sampled, range(new, seq + 1))
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

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:
        self._shelf.let_go(keep, since, used)

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
            if not self.failure and self._source.stats.truncated:
                self.failure = (
                    f"'{self._source.url}' ends before the frames that it promises: its recording or copying was cut off. "
                    "What came before counts."
                )
            self._ended = True
            return self._sampler.end()
        with frame:
            self._time_ns = self._time_ns + self._period_ns if frame.time is None else round(frame.time * 1e9)
            return self._sampler.offer(frame.seq, self._time_ns, frame.gap_before)

    def _place(self, sampled: Sampled, skipped: range) -> None:
        frame = self._source.latest()
        if frame is None or frame.seq != sampled.mark.seq:
            raise UsageError("A recording's ticks need its source for themselves, and somebody else has stepped it.")
        with frame:
            while not self._shelf.place(sampled, frame):
                # Whoever asks for a tick far ahead has no use for those on the way, and has not seen them.
                if not self._shelf.pass_over(skipped):
                    raise UsageError(
                        f"All {self._shelf.capacity} frames that may be held are in use: let go of earlier ticks, or open "
                        "the ticks with a larger backlog."
                    )


class LiveTicks:
    """Ticks of a ring that a camera's thread or the host fills. Nothing here waits.

    The loop must come by before the ring overwrites what is new, every `ring.history` frames at least; what it misses is
    told with the next tick. So are ticks that are dropped, every second one, because more than `backlog` wait that are
    later than what the loop has used. The stream begins with the ring's newest frame at opening, or with frame `since`.

    When ticks are dropped: in `let_go` and, as long as frames come, in `newest` and `pump`; never in `after`, `get` or
    `over`. The loop calls the former between two passes over the ticks (Episode.commit, the executors while they wait,
    the first thing in a look at the newest tick) and the latter in the middle of one. So a tick that a pass got from
    `after` can be had from `get` until that pass is through.

    `numbered_from`: frame n of the ring is frame numbered_from + n of the episode. For an episode that goes on with a new
    ring, whose own numbers begin at 0: its frames must come after those that the journal speaks of.
    """

    def __init__(
        self,
        ring: FrameRing,
        settings: Settings | None = None,
        *,
        source: Source | None = None,
        since: int | None = None,
        numbered_from: int = 0,
        backlog: int = BACKLOG,
        max_bytes: int = 2 << 30,
    ) -> None:
        if numbered_from < 0:
            raise UsageError(f"Frames are numbered from 0 or a later number, and {numbered_from} came.")
        settings = settings or Settings()
        self.failure = ""  # why the source broke off
        self._source = source
        self._clock: Callable[[], int] = native().monotonic_ns
        self._sampler = Sampler(settings.every)
        self._shelf = Shelf(ring.frame_bytes, settings, backlog, max_bytes, numbered_from)
        self._numbered_from = numbered_from
        self._reader = ring.reader(1)
        self._next = max(self._newest_seq(), 0) if since is None else since
        self._ended = threading.Event()
        self._sampled: Sampled | None = None  # the last frame, not on the shelf yet
        self._complete = False  # all that will ever come is on the shelf
        self._looked_at = -1  # the latest tick when `after` last looked

    def end(self) -> None:
        """No frame will follow. Any thread; what was pushed before still counts."""
        self._ended.set()

    def pump(self) -> None:
        """Takes in the frames that have come. Between two passes over the ticks: those that wait may be thinned."""
        self._take_in(thin=True)

    def after(self, seq: int) -> Tick | None:
        if (tick := self._shelf.after(seq)) is None:
            self._take_in(thin=False)
            tick = self._shelf.after(seq)
        self._looked_at = self._shelf.last
        return tick

    @property
    def over(self) -> bool:
        """False as long as a tick is there that came after `after` last looked, by way of `newest`."""
        return self._complete and self._looked_at == self._shelf.last

    def newest(self) -> Tick | None:
        self.pump()
        return self._shelf.newest()

    def due_ns(self) -> int | None:
        return self._clock() + _LOOK_AGAIN_NS

    def get(self, seq: int) -> Tick:
        return self._shelf.get(seq)

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:
        self._shelf.let_go(keep, since, used, thin=True)

    @property
    def stats(self) -> IntakeStats:
        return self._shelf.stats(self._sampler.stats)

    def _take_in(self, *, thin: bool) -> None:
        if self._complete:
            return
        ended = self._is_ended()  # asked first: whatever came before the end is in the ring by now
        newest = self._newest_seq()  # a writer faster than this loop must not keep it here
        while not self._sampled and self._next <= newest and (frame := self._reader.next(self._next)) is not None:
            with frame:
                self._next = frame.seq + 1
                sampled = self._offer(frame)
                if sampled is not None and not self._shelf.place(sampled, frame, thin=thin):
                    self._shelf.lose(sampled)
        if ended:
            self._finish(thin=thin)

    def _offer(self, frame: Frame) -> Sampled | None:
        return self._sampler.offer(self._numbered_from + frame.seq, frame.captured_ns, frame.gap_before)

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

    def _finish(self, *, thin: bool) -> None:
        self._sampled = self._sampled or self._sampler.end() or self._shelf.last_lost()
        if self._sampled is not None:
            frame = self._reader.get(self._sampled.mark.seq - self._numbered_from)
            if frame is None:  # the host goes on pushing after the end
                self._shelf.lose(self._sampled)
            else:
                with frame:
                    if not self._shelf.place(self._sampled, frame, thin=thin):
                        return  # the loop will have let go of something when it comes again
        self._sampled, self._complete = None, True
        self._reader.close()
