"""The same feed on PyAV, for machines where the core was built without FFmpeg's development packages.

PyAV decodes into its own memory, so each frame is copied into its slot. The rest, from the ring to the messages, does
what compass_edge._native.Feed does (runtime/feed.hpp), in the same order. Two things PyAV does not offer: a read that
waits for the network ends only with its time-out, so stop() may take that long; and of a frame's faults it tells only
whether it is corrupt, so a concealed error may pass unflagged.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import av
import av.error

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.native import native
from compass_edge.frames.pyav_picture import ring_format, upright_picture
from compass_edge.frames.pyav_source import Broken, PyAvSource, Stalled
from compass_edge.frames.source import SourceStats

if TYPE_CHECKING:
    from compass_edge._native import FrameRing

_FIRST_BACKOFF_S = 0.25
_LONGEST_S = 1e8  # beyond it a time is a mistake
_LONGEST_KEY_INTERVAL_S = 10
_LONGEST_PAUSE_S = 60  # between two pictures of a file that is played at its own pace


class PyAvFeed:
    """A file, a stream or a camera, decoded by PyAV and copied into a ring."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float,
        format: str,
        options: dict[str, str],
        history: int,
        leases: int,
        max_width: int,
        max_height: int,
        max_bytes: int,
        source_id: int,
        threads: int,
        realtime: bool,
        reconnect: bool,
        max_backoff_s: float,
    ) -> None:
        if not url:
            raise UsageError("A source needs a URL: a path, rtsp://... or /dev/video0.")
        if "\0" in url:
            raise UsageError("A source's URL must not contain a zero byte.")
        if not 0 < timeout_s <= 1e6:
            raise UsageError(f"timeout_s must be above 0 seconds, got {timeout_s}.")
        if not 1 <= threads <= 64:
            raise UsageError(f"A codec runs on 1 to 64 threads, got {threads}.")
        if not 0 < max_backoff_s <= 1e6:
            raise UsageError(
                f"max_backoff_s must be above 0 seconds, got {max_backoff_s}. To give up at once, turn reconnect off."
            )
        self._url, self._source_id, self._realtime = url, source_id, realtime
        self._reconnect, self._max_backoff_s = reconnect, max_backoff_s
        self._counts = asdict(SourceStats())
        self._control = threading.Lock()  # held by whoever steps, seeks, starts or stops
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._lost = self._sought = False
        self._backoff_s = 0.0
        self.state, self.failure = "running", ""
        self._source = PyAvSource(url, timeout_s=timeout_s, format=format, options=options, threads=threads)
        self._pending = [self._first_frame()]
        self.info = self._source.describe(self._pending[0])

        core = native()
        width, height = max(max_width, self.info["width"]), max(max_height, self.info["height"])
        frame_bytes = core.frame_bytes(ring_format(self.info["pixel_format"]), width, height)
        if frame_bytes * (history + leases + 1) > max_bytes:
            raise UsageError(
                f"The ring for {width}x{height} pictures with history {history} and {leases} leases would take "
                f"{frame_bytes * (history + leases + 1) >> 20} MiB; max_bytes allows {max_bytes >> 20} MiB. Ask for less "
                "history or fewer leases, or raise max_bytes."
            )
        self.ring: FrameRing = core.FrameRing(frame_bytes, history=history, leases=leases)
        self._writer = self.ring.writer()

    @property
    def stats(self) -> dict[str, Any]:
        seen = {"packets": self._source.packets, "damaged_packets": self._source.damaged_packets}
        return {**self._counts, **seen}

    def step(self) -> str:
        with self._in_control():
            if self._thread is not None:
                raise UsageError(
                    "This source runs on its own thread: read its ring, or stop() it and step it yourself."
                )
            return self._advance()

    def seek(self, time_s: float) -> None:
        with self._in_control():
            if self._thread is not None:
                raise UsageError("Stop the source before seeking in it.")
            if self.info["live"]:
                raise UsageError(f"'{self._url}' is live and cannot be searched.")
            duration, start = self.info["duration_s"], self._source.start_s
            first = max(min(start, 0.0), -_LONGEST_S)
            last = min(max(start, 0.0) + duration + 1, _LONGEST_S) if duration > 0 else _LONGEST_S
            if not first <= time_s <= last:
                raise UsageError(f"'{self._url}' lasts {duration:f} s; cannot seek to {time_s:f} s.")
            self._sought = True
            target = math.floor(time_s / float(self._source.stream.time_base) + 1e-6)
            # A container without a good index lands after the target, behind the last picture or between key frames:
            # start further back until the picture is there and whole.
            damaged_packets, back = self._source.damaged_packets, 0.0
            while True:
                start = max(first, time_s - back)
                self._writer.mark_gap()
                found = self._land(start, target)
                self._source.damaged_packets = damaged_packets  # what a search skips between key frames is no damage
                if found or start == first or (self._pending and back > _LONGEST_KEY_INTERVAL_S):
                    return
                back = max(1.0, 4 * back)

    def start(self) -> None:
        with self._in_control():
            if self._thread is not None:
                raise UsageError("This source runs already.")
            self._thread = threading.Thread(target=self._run, name="compass-edge feed", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        with self._control:
            if self._thread is not None:
                self._stopping.set()
                self._thread.join()
                self._stopping.clear()
                if self.info["live"]:  # what it sends meanwhile is missed, and stale when somebody starts again
                    self._lost, self._pending = True, []
                    self._writer.mark_gap()
            self._thread = None

    @contextmanager
    def _in_control(self) -> Iterator[None]:
        if not self._control.acquire(blocking=False):
            raise UsageError("Another thread is using this source: one at a time may step or seek it.")
        try:
            yield
        finally:
            self._control.release()

    def _run(self) -> None:
        self._pace_origin: tuple[float, float] | None = None
        self._paced = 0.0
        while not self._stopping.is_set():
            try:
                state = self._advance()
            except Exception as error:  # the thread's last word: whoever asks for the state must see it
                self.state, self.failure = "failed", str(error)
                return
            if state in ("ended", "failed") or (state == "stalled" and not self._reconnect):
                return

    def _advance(self) -> str:
        if self._lost and not self._recover():
            return "stalled"
        while True:
            try:
                if not self._pending and (frame := self._source.fetch()) is not None:
                    self._pending.append(frame)
            except Stalled:
                return self._lose("stalled", f"Nothing came from '{self._url}' for {self._source.timeout_s:f} s.")
            except Broken as error:
                return self._lose("stalled" if self._reconnect else "failed", f"'{self._url}' broke off: {error}.")
            if not self._pending:
                self._counts["truncated"] = not self._sought and self._source.packets < self.info["frames"]
                self.state = "ended"
                return "ended"
            if self._realtime and self._thread is not None:
                self._pace(self._pending[0].time)
                if self._stopping.is_set():
                    return "stalled"  # the picture keeps
            if self._publish(self._pending.pop(0)):
                self._backoff_s = 0.0
                self.state = "running"
                return "running"

    def _publish(self, frame: av.VideoFrame) -> bool:
        damaged = self._source.is_damaged(frame)
        if self._source.missing:
            self._writer.mark_gap()
            self._source.missing = False
        try:
            picture = upright_picture(frame)
        except (av.error.FFmpegError, ValueError) as error:
            raise CompassError(
                f"FFmpeg cannot convert pictures of the pixel format {frame.format.name} ({error}). Re-encode the video as "
                "h264 in yuv420p."
            ) from None
        base = frame.time_base or self._source.stream.time_base
        try:
            self._writer.push(
                picture.planes,
                format=picture.format,
                width=picture.width,
                height=picture.height,
                matrix=picture.matrix,
                range=picture.range,
                captured_ns=self._source.captured_ns(frame),
                pts=frame.pts,
                time_base=(base.numerator, base.denominator),
                source=self._source_id,
                damaged=damaged,
            )
        except UsageError:  # larger than the ring was planned for
            self._counts["oversize"] += 1
            self._writer.mark_gap()
            return False
        self._counts["frames"] += 1
        self._counts["damaged_frames"] += damaged
        self._counts["converted" if picture.converted else "copied"] += 1
        return True

    def _pace(self, time_s: float | None) -> None:
        if time_s is None:
            return
        # Time stamps that jump (a damaged or joined file) start the pace anew.
        jump, self._paced = time_s - self._paced, time_s
        if self._pace_origin is None or not 0 <= jump <= _LONGEST_PAUSE_S:
            self._pace_origin = (time.monotonic(), time_s)
        began, first = self._pace_origin
        self._stopping.wait(max(0.0, began + time_s - first - time.monotonic()))

    def _land(self, start_s: float, target: int) -> bool:
        """Decodes from `start_s` to the picture on screen at `target`. False when starting earlier may do better."""
        self._pending = []
        try:
            self._source.seek(start_s)
            ahead = self._source.fetch()
            if ahead is None:
                return False
            if ahead.pts is None and target > 0:
                raise UsageError(
                    f"The pictures of '{self._url}' carry no time stamps, so it cannot be searched. Convert it to mp4 or mkv."
                )
            if ahead.pts is not None and ahead.pts > target:
                self._pending = [ahead]
                return False
            shown, damaged = None, False
            while ahead is not None and ahead.pts is not None and ahead.pts <= target:
                shown, damaged = ahead, self._source.is_damaged(ahead)
                ahead = self._source.fetch()
        except (Stalled, Broken):
            return False
        self._pending = [frame for frame in (shown, ahead) if frame is not None]
        return not damaged

    def _lose(self, state: str, why: str) -> str:
        """Delivery stopped: the next frame that comes, whenever it comes, has a gap before it."""
        self._writer.mark_gap()
        if self._stopping.is_set():  # no fault of the source's
            return "stalled"
        self._lost = self.info["live"] and self._reconnect
        self._counts["stalls"] += 1
        self.state, self.failure = state, why
        return state

    def _recover(self) -> bool:
        if self._stopping.wait(self._backoff_s):
            return False
        self._backoff_s = min(max(2 * self._backoff_s, _FIRST_BACKOFF_S), self._max_backoff_s)
        try:
            self._source.open()
        except CompassError as error:
            self.state, self.failure = "stalled", str(error)
            return False
        self._pending = []
        self._lost = False
        self._counts["reconnects"] += 1
        return True

    def _first_frame(self) -> av.VideoFrame:
        """Only a decoded frame tells the rotation and, for some streams, the size."""
        try:
            first = self._source.fetch()
        except (Stalled, Broken):
            raise CompassError(
                f"'{self._url}' did not answer within {self._source.timeout_s:f} s. Check that the camera or the sender runs "
                "and can be reached, or raise timeout_s."
            ) from None
        if first is None:
            raise UsageError(
                f"'{self._url}' has a video stream in which no picture can be decoded: it is damaged or ends before its "
                "first picture."
            )
        return first
