"""A source of frames: opened by URL, read from a ring.

with open_source("episode.mp4") as source:
    for frame in source:                  # recorded: every frame, in order
        patches = preprocessor.run(frame)

with open_source("/dev/video0") as camera:
    camera.start()                        # live: its own thread fills the ring
    frame = camera.latest()               # never waits
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from compass_edge.errors import CompassError, EnvironmentFault, UsageError
from compass_edge.frames.native import native

if TYPE_CHECKING:
    from compass_edge._native import Frame, FrameRing, Reader

State = Literal["running", "ended", "stalled", "failed"]
Backend = Literal["ffmpeg", "pyav"]
Decoder = Literal["software", "nvdec", "jetson"]
DECODERS: tuple[Decoder, ...] = get_args(Decoder)


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What is known of a stream before its first frame. Sizes are as shown, after rotation; 0 means unknown."""

    codec: str
    pixel_format: str
    width: int
    height: int
    rotation: int
    frame_rate: float
    duration_s: float
    frames: int
    live: bool


@dataclass(frozen=True, slots=True)
class SourceStats:
    """What became of the packets so far."""

    packets: int = 0
    damaged_packets: int = 0
    frames: int = 0
    damaged_frames: int = 0
    direct: int = 0  # decoded into their slot
    copied: int = 0  # copied into their slot
    converted: int = 0  # other pixel format, or rotated
    oversize: int = 0  # larger than the ring was planned for, dropped
    stalls: int = 0
    reconnects: int = 0
    truncated: bool = False  # the file ended before the frames its container promised


class Feed(Protocol):
    """What fills a ring: FFmpeg in C++ (compass_edge._native.Feed) or PyAV (compass_edge.frames.pyav.PyAvFeed)."""

    @property
    def ring(self) -> FrameRing: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def state(self) -> str: ...
    @property
    def failure(self) -> str: ...
    @property
    def stats(self) -> dict[str, Any]: ...
    def step(self) -> str: ...
    def seek(self, time_s: float) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


def backends() -> tuple[Backend, ...]:
    """The ways to decode video here, the preferred one first."""
    found: list[Backend] = []
    if native().ffmpeg_version is not None:
        found.append("ffmpeg")
    try:
        import av  # noqa: F401
    except ImportError:
        pass
    else:
        found.append("pyav")
    return tuple(found)


def open_source(
    url: str,
    *,
    timeout_s: float = 5.0,
    format: str = "",
    options: Mapping[str, str] | None = None,
    history: int = 8,
    leases: int = 8,
    max_width: int = 0,
    max_height: int = 0,
    max_bytes: int = 1 << 30,
    source_id: int = 0,
    threads: int = 1,
    realtime: bool = False,
    reconnect: bool = True,
    max_backoff_s: float = 8.0,
    backend: Backend | None = None,
    decoder: Decoder = "software",
) -> Source:
    """Open a file, a stream (rtsp://, tcp://, ...) or a camera (/dev/video0).

    `history` newest frames can always be looked up and `leases` frames may be held at a time; `max_bytes` bounds the
    ring. A live source that delivers nothing for `timeout_s` is reported as stalled and, with `reconnect`, opened again
    after waits that double up to `max_backoff_s`. `realtime` makes a file's thread play at the file's own pace.
    `decoder`: "nvdec" decodes on an NVIDIA card or Thor and "jetson" on an Orin's own hardware, by FFmpeg's C++ backend alone.
    `options` go to FFmpeg, for example {"rtsp_transport": "tcp"} or {"framerate": "30", "video_size": "640x480"}.
    """
    there = backends()
    if backend is not None and backend not in there:
        cure = (
            "install FFmpeg's development packages and compass-edge again" if backend == "ffmpeg" else "pip install av"
        )
        raise EnvironmentFault(
            f"The {backend} backend is not available here ({', '.join(there) or 'none'} is): {cure}."
        )
    if not there:
        raise EnvironmentFault("Nothing here can decode video. `pip install av` is the quickest cure.")
    feed_type: Any
    further: dict[str, Any] = {}
    if (backend or there[0]) == "ffmpeg":
        feed_type, further = native().Feed, {"decoder": decoder}
    elif decoder != "software":
        raise EnvironmentFault(
            f"Decoding on hardware ({decoder}) needs the ffmpeg backend, and video goes through PyAV here: install FFmpeg's "
            "development packages and compass-edge again, or leave the decoder out."
        )
    else:
        from compass_edge.frames.pyav import PyAvFeed

        feed_type = PyAvFeed
    feed = feed_type(
        str(url),
        timeout_s=timeout_s,
        format=format,
        options=dict(options or {}),
        history=history,
        leases=leases,
        max_width=max_width,
        max_height=max_height,
        max_bytes=max_bytes,
        source_id=source_id,
        threads=threads,
        realtime=realtime,
        reconnect=reconnect,
        max_backoff_s=max_backoff_s,
        **further,
    )
    return Source(str(url), feed, backend or there[0])


class Source:
    """An open source. Iterate a recording; `start()` a live one and ask for `latest()`."""

    def __init__(self, url: str, feed: Feed, backend: Backend) -> None:
        self.url = url
        self.backend = backend
        self._feed = feed
        self._reader: Reader | None = None  # takes the leases that are left when it is first needed

    @property
    def info(self) -> StreamInfo:
        return StreamInfo(**self._feed.info)

    @property
    def ring(self) -> FrameRing:
        return self._feed.ring

    @property
    def stats(self) -> SourceStats:
        return SourceStats(**self._feed.stats)

    @property
    def state(self) -> State:
        state: Any = self._feed.state
        return state  # type: ignore[no-any-return]

    @property
    def failure(self) -> str:
        """Why the source last stalled or failed; empty when it never did."""
        return self._feed.failure

    def reader(self, leases: int | None = None) -> Reader:
        """A reader of the ring with a lease budget of its own; by default all that is left. Ask before the first step."""
        return self.ring.reader(max(self.ring.leases_left, 1) if leases is None else leases)

    def latest(self) -> Frame | None:
        """The newest frame, or None before the first one. Never waits."""
        return self._own_reader().latest()

    def step(self) -> Frame | None:
        """Decode one more frame; None at the end. A live source that stalls raises CompassError, and goes on if asked again."""
        state = self._feed.step()
        if state == "running":
            return self._own_reader().latest()
        if state == "ended":
            return None
        raise CompassError(self._feed.failure)

    def seek(self, time_s: float) -> None:
        """Make the next step give the frame that is on screen at `time_s` seconds."""
        self._feed.seek(time_s)

    def start(self) -> None:
        """Fill the ring from a thread of its own, until the end or `stop()`."""
        self._feed.start()

    def stop(self) -> None:
        self._feed.stop()

    def close(self) -> None:
        self._feed.stop()
        self._reader = None

    def __iter__(self) -> Iterator[Frame]:
        while (frame := self.step()) is not None:
            yield frame

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.info
        return f"<Source {self.url!r}: {info.width}x{info.height} {info.codec} by {self.backend}>"

    def _own_reader(self) -> Reader:
        if self._reader is None:
            self._reader = self.reader()
        return self._reader


def push_ring(
    width: int, height: int, *, format: str = "rgb24", history: int = 8, leases: int = 8, max_bytes: int = 1 << 30
) -> FrameRing:
    """A ring for a host that hands over its frames itself: `ring.writer().push(picture)`."""
    core = native()
    bytes_needed = core.frame_bytes(format, width, height)
    if bytes_needed * (history + leases + 1) > max_bytes:
        raise UsageError(
            f"A ring of {history + leases + 1} frames of {bytes_needed} bytes exceeds max_bytes = {max_bytes}. Ask for less "
            "history or fewer leases, or raise max_bytes."
        )
    ring: FrameRing = core.FrameRing(bytes_needed, history=history, leases=leases)
    return ring
