"""The same feed on PyAV, for machines where the core was built without FFmpeg's development packages.

PyAV decodes into its own memory, so each frame is copied into its slot. The rest, from the ring to the messages, does
what compass_edge._native.Feed does (runtime/feed.hpp), in the same order.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import av.error

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.native import native
from compass_edge.frames.pyav_picture import quarter_turns, ring_format, upright_picture

if TYPE_CHECKING:
    from compass_edge._native import FrameRing

_PATIENCE = 16  # failures in a row after which a file will not recover
_FIRST_BACKOFF_S = 0.25
_MAX_PIXELS = 1 << 26


@dataclass(slots=True)
class _Counts:
    packets: int = 0
    damaged_packets: int = 0
    frames: int = 0
    damaged_frames: int = 0
    direct: int = 0
    copied: int = 0
    converted: int = 0
    oversize: int = 0
    stalls: int = 0
    reconnects: int = 0
    truncated: bool = False


class _Stalled(Exception):
    pass


class _Broken(Exception):
    pass


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
        if not 0 < timeout_s <= 1e6:
            raise UsageError(f"timeout_s must be above 0 seconds, got {timeout_s}.")
        self._url, self._timeout_s, self._format, self._options = url, timeout_s, format, options
        self._threads, self._source_id, self._realtime = threads, source_id, realtime
        self._reconnect, self._max_backoff_s = reconnect, max_backoff_s
        self._counts = _Counts()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._lost = self._sought = self._damaged = False
        self._backoff_s = 0.0
        self._taken: dict[int | None, int] = {}
        self.state, self.failure = "running", ""
        self._open()
        self.info = self._describe()

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
        return {field.name: getattr(self._counts, field.name) for field in fields(_Counts)}

    def step(self) -> str:
        if self._thread is not None:
            raise UsageError("This source runs on its own thread: read its ring, or stop() it and step it yourself.")
        return self._advance()

    def seek(self, time_s: float) -> None:
        if self._thread is not None:
            raise UsageError("Stop the source before seeking in it.")
        if self.info["live"]:
            raise UsageError(f"'{self._url}' is live and cannot be searched.")
        duration = self.info["duration_s"]
        if not time_s >= 0 or (duration > 0 and time_s > duration + 1):
            raise UsageError(f"'{self._url}' lasts {duration:f} s; cannot seek to {time_s:f} s.")
        self._sought = True
        base = self._stream.time_base
        target = math.floor(time_s / base + 1e-6)
        # Containers without a good index land after the target: start further back until the first picture is early enough.
        back_s = 0.0
        while True:
            start = max(0.0, time_s - back_s)
            try:
                self._container.seek(int(start / base), stream=self._stream, backward=True)
            except av.error.FFmpegError:
                self._open()
            self._pending = []
            self._frames = self._decode()
            self._writer.mark_gap()
            ahead = next(self._frames, None)
            if ahead is None or ahead.pts is None or ahead.pts <= target or start == 0:
                break
            back_s = max(1.0, 4 * back_s)
        # Decode on until the picture after the target; the one before it is on screen.
        shown = None
        while ahead is not None and ahead.pts is not None and ahead.pts <= target:
            shown, ahead = ahead, next(self._frames, None)
        self._pending = [frame for frame in (shown, ahead) if frame is not None]

    def start(self) -> None:
        if self._thread is not None:
            raise UsageError("This source runs already.")
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="compass-edge feed", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._thread = None

    def _run(self) -> None:
        origin: tuple[float, float] | None = None
        while not self._stopping.is_set():
            if self._realtime and not self._pending and (frame := next(self._frames, None)) is not None:
                self._pending.append(frame)
            if self._realtime and self._pending and self._pending[0].time is not None:
                origin = origin or (time.monotonic(), self._pending[0].time)
                self._stopping.wait(max(0.0, origin[0] + self._pending[0].time - origin[1] - time.monotonic()))
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
                frame = self._pending.pop(0) if self._pending else next(self._frames, None)
            except _Stalled:
                return self._lose("stalled", f"Nothing came from '{self._url}' for {self._timeout_s:f} s.")
            except _Broken as error:
                return self._lose("stalled" if self._reconnect else "failed", f"'{self._url}' broke off: {error}.")
            if frame is None:
                self._counts.truncated = not self._sought and self._counts.packets < self.info["frames"]
                self.state = "ended"
                return "ended"
            if self._publish(frame):
                self._backoff_s = 0.0
                self.state = "running"
                return "running"

    def _publish(self, frame: av.VideoFrame) -> bool:
        picture = upright_picture(frame)
        damaged = self._note_damage(frame)
        try:
            self._writer.push(
                picture.planes,
                format=picture.format,
                width=picture.width,
                height=picture.height,
                matrix=picture.matrix,
                range=picture.range,
                captured_ns=self._taken.get(frame.pts, self._taken_ns),
                pts=frame.pts,
                time_base=(frame.time_base.numerator, frame.time_base.denominator),
                source=self._source_id,
                damaged=damaged,
            )
        except UsageError:  # larger than the ring was planned for
            self._counts.oversize += 1
            self._writer.mark_gap()
            return False
        self._counts.frames += 1
        self._counts.damaged_frames += damaged
        if picture.converted:
            self._counts.converted += 1
        else:
            self._counts.copied += 1
        return True

    def _note_damage(self, frame: av.VideoFrame) -> bool:
        if frame.is_corrupt:
            self._counts.damaged_packets += 1
            self._damaged = True
        elif frame.key_frame:
            self._damaged = False
        return self._damaged

    def _lose(self, state: str, why: str) -> str:
        """Delivery stopped: the next frame that comes, whenever it comes, has a gap before it."""
        self._writer.mark_gap()
        self._lost = self.info["live"] and self._reconnect
        self._counts.stalls += 1
        self.state, self.failure = state, why
        return state

    def _recover(self) -> bool:
        if self._stopping.wait(self._backoff_s):
            return False
        self._backoff_s = min(max(2 * self._backoff_s, _FIRST_BACKOFF_S), self._max_backoff_s)
        try:
            self._open()
        except CompassError as error:
            self.state, self.failure = "stalled", str(error)
            return False
        self._lost = False
        self._counts.reconnects += 1
        return True

    def _is_device(self) -> bool:
        return self._format in ("v4l2", "video4linux2") or self._url.startswith(("v4l2://", "/dev/video"))

    def _is_live(self) -> bool:
        scheme = self._url.split("://")[0] if "://" in self._url else ""
        return self._is_device() or scheme not in ("", "file", "http", "https")

    def _open(self) -> None:
        url = self._url.removeprefix("v4l2://")
        format = self._format or ("v4l2" if self._is_device() else None)
        options = dict(self._options)
        if not self._is_live():
            # A playlist must not make us open other files or hosts than the one that was named.
            web = url.startswith("http")
            options.setdefault("protocol_whitelist", "http,https,tcp,tls,crypto,data" if web else "file,crypto,data")
        try:
            self._container = av.open(
                url, format=format, options=options, timeout=(self._timeout_s, self._timeout_s), metadata_errors="ignore"
            )
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise self._explain(error) from None
        if not self._container.streams.video:
            raise UsageError(
                f"'{self._url}' has no video stream (FFmpeg reads it as {self._container.format.long_name}). Expected a video."
            )
        self._stream = self._container.streams.video[0]
        self._stream.codec_context.thread_count = self._threads
        if self._stream.codec_context.width * self._stream.codec_context.height > _MAX_PIXELS:
            raise UsageError(f"'{self._url}' claims pictures of more than {_MAX_PIXELS} pixels: it is damaged.")
        self._frames = self._decode()
        # Only a decoded frame tells the rotation and, for some streams, the size.
        try:
            first = next(self._frames, None)
        except (_Stalled, _Broken) as error:
            raise CompassError(
                f"'{self._url}' did not answer within {self._timeout_s:f} s ({error}). Check that the camera or the sender "
                "runs and can be reached, or raise timeout_s."
            ) from None
        if first is None:
            raise UsageError(
                f"'{self._url}' has a video stream in which no picture can be decoded: it is damaged or ends before its "
                "first picture."
            )
        self._pending = [first]

    def _describe(self) -> dict[str, Any]:
        stream, first = self._stream, self._pending[0]
        turns = quarter_turns(first)
        duration = float(stream.duration * stream.time_base) if stream.duration else 0.0
        return {
            "codec": stream.codec_context.name,
            "pixel_format": first.format.name,
            "width": first.height if turns % 2 else first.width,
            "height": first.width if turns % 2 else first.height,
            "rotation": 90 * turns,
            "frame_rate": float(stream.guessed_rate or stream.average_rate or 0),
            "duration_s": duration or float(self._container.duration or 0) / 1e6,
            "frames": stream.frames,
            "live": self._is_live(),
        }

    def _decode(self) -> Iterator[av.VideoFrame]:
        """Decoded frames to the end of the stream, over whatever damage lies on the way."""
        faults = 0
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
            except av.error.FFmpegError as error:
                if isinstance(error, (av.error.ExitError, av.error.TimeoutError)):
                    raise _Stalled from None
                faults += 1
                if self._is_live():
                    raise _Broken(str(error)) from None
                if faults == _PATIENCE:
                    return
                packets = self._container.demux(self._stream)
                continue
            if packet is None:
                if self._is_live():
                    raise _Broken("the stream ended")
                return
            faults = 0
            self._taken_ns = time.monotonic_ns()
            if packet.size > 0:
                self._counts.packets += 1
                self._taken[packet.pts] = self._taken_ns
                if len(self._taken) > 64:
                    self._taken.pop(next(iter(self._taken)))
            try:
                yield from packet.decode()
            except av.error.FFmpegError:
                self._counts.damaged_packets += 1
                self._damaged = True

    def _explain(self, error: Exception) -> CompassError:
        """What a person can do about a source that did not open."""
        quoted = f"'{self._url}'"
        what = getattr(error, "strerror", None) or str(error)
        if isinstance(error, (av.error.ExitError, av.error.TimeoutError)):
            return CompassError(
                f"{quoted} did not answer within {self._timeout_s:f} s. Check that the camera or the sender runs and can be "
                "reached, or raise timeout_s."
            )
        if self._is_device():
            return UsageError(
                f"No frames could be had from the camera {quoted}: {what}. `v4l2-ctl --list-devices` shows which devices "
                "exist; reading one needs the group `video`."
            )
        if self._is_live():
            return CompassError(
                f"No stream could be opened at {quoted}: {what}. Check the address and that the sender runs."
            )
        path = Path(self._url)
        if "://" not in self._url:
            if not path.exists():
                return UsageError(f"There is no file {quoted}. Check the path.")
            if path.is_dir():
                return UsageError(f"{quoted} is a folder; expected a video file. Name one file in it.")
            if path.is_file() and path.stat().st_size == 0:
                return UsageError(f"{quoted} is empty (0 bytes); expected a video. Copy or record it again.")
            if isinstance(error, PermissionError):
                return UsageError(f"{quoted} may not be read by this user.")
            with path.open("rb") as file:
                if file.read(12)[4:8] == b"ftyp":
                    return UsageError(
                        f"{quoted} is an MP4 without a readable index (moov): it is damaged, or its recording or copying was "
                        "cut off. Copy or record it again."
                    )
        return UsageError(
            f"{quoted} is not a video that FFmpeg can read: {what}. Expected a video file such as mp4, mkv, avi or mjpeg."
        )
