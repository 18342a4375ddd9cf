"""A container and its codec on PyAV: opened by URL, read frame by frame (runtime/source.hpp and decoder.hpp)."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import av.error

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.pyav_picture import quarter_turns

_PATIENCE = 16  # failures in a row after which a file will not recover
# Metadata that is not UTF-8 is no reason to refuse a video; PyAV 19 never does, and dropped the option.
_LENIENT: dict[str, Any] = {"metadata_errors": "ignore"} if int(av.__version__.split(".")[0]) < 19 else {}
_MAX_PIXELS = 1 << 26
_LONGEST_REORDERING = 32  # packets, of h264 and hevc: a run of B-frames, then the codec's delay (decoder.cpp)
_ATTACHED_PICTURE = 0x400  # FFmpeg's AV_DISPOSITION_ATTACHED_PIC: a music file's cover
_EXITS = (av.error.ExitError, av.error.TimeoutError)  # PyAV ended the call because its time was up


class Stalled(Exception):
    """Nothing came within the time-out."""


class Broken(Exception):
    """The connection failed."""


class PyAvSource:
    """Frames of the first video stream, in display order. One thread at a time; a read cannot be interrupted."""

    def __init__(self, url: str, *, timeout_s: float, format: str, options: dict[str, str], threads: int) -> None:
        self.url, self.timeout_s, self._format, self._options, self._threads = url, timeout_s, format, options, threads
        self.packets = self.damaged_packets = 0
        self._finished = self._damaged = False
        self._container: Any = None
        self._read_ahead: tuple[int, int] | None = None  # between which times opening filled FFmpeg's queue
        self._first_dts: int | None = None
        self._close_file: Callable[[], object] = lambda: None
        self.missing = False  # a picture was lost since the caller last cleared this
        if "://" not in url and Path(url).is_fifo():
            raise UsageError(
                f"'{url}' is a named pipe, which would block until somebody writes to it. Send the stream over tcp:// or "
                "rtsp:// instead."
            )
        self.open()

    def open(self) -> None:
        """Opens it, again if need be. Raises CompassError with what a person can do about it."""
        if self._container is not None:
            self._container.close()  # first: a camera, or a port that is listened on, can be had only once
        self._close_file()
        asked_ns = time.monotonic_ns()
        self._container = self._opened()
        self.stream = self._video_stream()
        context = self.stream.codec_context
        context.thread_count = self._threads
        context.flags |= av.codec.context.Flags.output_corrupt  # a damaged picture comes out instead of vanishing
        if context.width * context.height > _MAX_PIXELS:
            raise UsageError(f"'{self.url}' claims pictures of more than {_MAX_PIXELS} pixels: it is damaged.")
        self._restart()
        if self.is_live:
            self._read_ahead = (asked_ns, time.monotonic_ns())

    def seek(self, time_s: float) -> None:
        """Positions at or before the last key frame at or before `time_s`."""
        try:
            self._container.seek(int(time_s / self.stream.time_base), stream=self.stream, backward=True)
        except av.error.FFmpegError:
            self.open()
        self._restart()

    def fetch(self) -> av.VideoFrame | None:
        """The next picture, over whatever damage lies on the way; None at the end. Raises Stalled or Broken."""
        until = time.monotonic() + self.timeout_s
        while not self._decoded:
            if self._finished:
                return None
            if self.is_live and time.monotonic() > until:  # packets that make no pictures are no delivery
                raise Stalled
            packet = self._read()
            if packet is None:
                self._finished = True
            else:
                self._decode(packet)
        return self._decoded.popleft()

    def captured_ns(self, frame: av.VideoFrame) -> int:
        """When its packet was taken from the source; without a time stamp to find it by, no later than that."""
        return self._recent[0] if frame.pts is None else self._taken.get(frame.pts, self._recent[0])

    def is_damaged(self, frame: av.VideoFrame) -> bool:
        """Decoded from a damaged packet, or predicted from such a frame. Ask for each frame once, in order."""
        if frame.is_corrupt:
            self.damaged_packets += 1
            self._damaged = True
        elif frame.key_frame:
            self._damaged = False
        return self._damaged

    def describe(self, first: av.VideoFrame) -> dict[str, Any]:
        """The stream as StreamInfo names it. Only a decoded frame tells the rotation and, for some streams, the size."""
        turns = quarter_turns(first)
        return {
            "codec": self.stream.codec_context.codec.canonical_name,
            "pixel_format": first.format.name,
            "width": first.height if turns % 2 else first.width,
            "height": first.width if turns % 2 else first.height,
            "rotation": 90 * turns,
            "frame_rate": float(self.stream.guessed_rate or self.stream.average_rate or 0),
            "duration_s": self.duration_s,
            "frames": self.stream.frames,
            "live": self.is_live,
        }

    @property
    def is_device(self) -> bool:
        return self._format in ("v4l2", "video4linux2") or self.url.startswith(("v4l2://", "/dev/video"))

    @property
    def is_live(self) -> bool:
        scheme = self.url.split("://")[0] if "://" in self.url else ""
        return self.is_device or scheme not in ("", "file", "http", "https")

    @property
    def duration_s(self) -> float:
        if self.stream.duration:
            return float(self.stream.duration * self.stream.time_base)
        return float(self._container.duration or 0) / av.time_base

    @property
    def start_s(self) -> float:
        return float((self.stream.start_time or 0) * self.stream.time_base)

    def _restart(self) -> None:
        self._packets: Iterator[av.Packet[Any]] = self._container.demux(self.stream)
        self._decoded: deque[av.VideoFrame] = deque()
        self._taken: dict[int | None, int] = {}
        reordering = _LONGEST_REORDERING if self.stream.codec_context.has_b_frames else 0
        self._recent: deque[int] = deque(maxlen=reordering + self._threads)  # as many as the codec may hold back
        self._finished = self._damaged = False
        self._joining = True
        self._read_ahead = self._first_dts = None

    def _arrival_ns(self, packet: av.Packet[Any]) -> int:
        """When it came from its source. What opening read ahead must not look fresher than it is (runtime/source.cpp)."""
        now = time.monotonic_ns()
        if self._read_ahead is None or packet.dts is None:
            return now
        asked, answered = self._read_ahead
        if self._first_dts is None:
            self._first_dts = packet.dts
        arrived = asked + int((packet.dts - self._first_dts) * self.stream.time_base * 1_000_000_000)
        if not asked <= arrived < answered:
            self._read_ahead = None
            return now
        return arrived

    def _read(self) -> av.Packet[Any] | None:
        faults = 0
        while faults < _PATIENCE:
            try:
                packet = next(self._packets, None)
            except IndexError:  # a packet of a stream that appeared after opening, which PyAV cannot place: not ours
                self._packets = self._container.demux(self.stream)
                continue
            except av.error.FFmpegError as error:
                self._packets = self._container.demux(self.stream)
                if isinstance(error, _EXITS):
                    raise Stalled from None
                if self.is_live:
                    raise Broken(error.strerror or str(error)) from None
                faults += 1
                continue
            if packet is None and self.is_live:
                raise Broken("the stream ended")
            return packet
        return None

    def _decode(self, packet: av.Packet[Any]) -> None:
        if packet.size > 0:
            self.packets += 1
            self._recent.append(self._arrival_ns(packet))
            self._taken[packet.pts] = self._recent[-1]
            if len(self._taken) > 64:
                self._taken.pop(next(iter(self._taken)))
            # Joined between key frames, some codecs invent what they refer to and say nothing.
            if self._joining and not packet.is_keyframe:
                self._damaged = True
            self._joining = False
        try:
            self._decoded.extend(packet.decode())
        except av.error.FFmpegError:
            self.damaged_packets += 1
            self._damaged = self.missing = True

    def _opened(self) -> Any:
        url = self.url.removeprefix("v4l2://")
        format = self._format or ("v4l2" if self.is_device else None)
        limits = {"max_pixels": str(_MAX_PIXELS)}
        timeout = (self.timeout_s, self.timeout_s)
        try:
            if self.is_live or "protocol_whitelist" in self._options:
                return av.open(url, format=format, options=limits | self._options, timeout=timeout, **_LENIENT)
            # A playlist, or whatever else names other files and hosts, must not make us open them.
            if "://" in url:
                web = url.startswith("http")
                limits["protocol_whitelist"] = "http,https,tcp,tls,crypto,data" if web else "file"
                return av.open(url, format=format, options=limits | self._options, timeout=timeout, **_LENIENT)
            limits["protocol_whitelist"] = "none"
            file = Path(url).open("rb")  # noqa: SIM115 - closed with this object
            self._close_file = weakref.finalize(self, file.close)
            return av.open(file, format=format, options=limits | self._options, **_LENIENT)
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise self._explain(error) from None

    def _video_stream(self) -> Any:
        videos = [s for s in self._container.streams.video if not s.disposition.value & _ATTACHED_PICTURE]
        best = self._container.streams.best("video")
        if not videos:
            raise UsageError(
                f"'{self.url}' has no video stream (FFmpeg reads it as {self._container.format.long_name}). Expected a video."
            )
        stream = best if best in videos else videos[0]
        if stream.codec_context is None:
            raise UsageError(f"PyAV has no decoder for the video in '{self.url}'. Re-encode it as h264.")
        return stream

    def _explain(self, error: Exception) -> CompassError:
        """What a person can do about a source that did not open."""
        quoted = f"'{self.url}'"
        what = getattr(error, "strerror", None) or str(error)
        if isinstance(error, _EXITS):
            return CompassError(
                f"{quoted} did not answer within {self.timeout_s:f} s. Check that the camera or the sender runs and can be "
                "reached, or raise timeout_s."
            )
        if self.is_device:
            return UsageError(
                f"No frames could be had from the camera {quoted}: {what}. `v4l2-ctl --list-devices` shows which devices "
                "exist; reading one needs the group `video`."
            )
        if self.is_live:
            return CompassError(
                f"No stream could be opened at {quoted}: {what}. Check the address and that the sender runs."
            )
        if "://" not in self.url and (sentence := _trouble_with_file(Path(self.url), error)):
            return UsageError(f"{quoted} {sentence}" if not sentence.startswith("There") else sentence)
        return UsageError(
            f"{quoted} is not a video that FFmpeg can read: {what}. Expected a video file such as mp4, mkv, avi or mjpeg."
        )


def _trouble_with_file(path: Path, error: Exception) -> str:
    if not path.exists():
        return f"There is no file '{path}'. Check the path."
    if path.is_dir():
        return "is a folder; expected a video file. Name one file in it."
    if path.is_file() and path.stat().st_size == 0:
        return "is empty (0 bytes); expected a video. Copy or record it again."
    if isinstance(error, PermissionError):
        return "may not be read by this user."
    if path.is_file():
        with path.open("rb") as file:
            if file.read(12)[4:8] == b"ftyp":
                return (
                    "is an MP4 without a readable index (moov): it is damaged, or its recording or copying was cut off. "
                    "Copy or record it again."
                )
    return ""
