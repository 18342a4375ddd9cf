"""The frame bank: any frame of a film by its number, as a JPEG, for somebody who goes back and forth in it."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from typing import Any

import av
import av.error

from compass_edge.data.film import Picture
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError, UsageError
from compass_edge.frames.source import Source, open_source

_NEAR = 60  # frames ahead that are cheaper to decode than to search for
_SAME = 1e-4  # seconds


class FrameBank:
    """Any thread. `max_bytes` bounds the JPEGs that are kept.

    A number means the same frame however it was reached: a search goes by the time stamp that the file gives to that
    frame, is checked against it, and falls back to counting from the beginning.
    """

    def __init__(self, film: VideoFilm, *, max_bytes: int = 128 << 20) -> None:
        try:
            from PIL import Image
        except ImportError as error:
            raise EnvironmentFault("Showing frames needs pillow: `pip install 'compass-edge[data]'`.") from error
        self._image: Any = Image
        self.film, self.frames = film, film.frames
        self._times = _times_of(film)
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._bytes, self._max_bytes = 0, max_bytes
        self._lock = threading.Lock()
        self._source: Source | None = None
        self._next = 0  # the frame that the source gives next

    def jpeg(self, number: int) -> bytes:
        if not 0 <= number < self.frames:
            raise UsageError(f"'{self.film.path}' has the frames 0 to {self.frames - 1}, and {number} was asked for.")
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
            return self._keep(number, self._picture(number))

    def close(self) -> None:
        with self._lock:
            if self._source is not None:
                self._source.close()
                self._source = None

    def _picture(self, number: int) -> Picture:
        near = self._source is not None and self._next <= number <= self._next + _NEAR
        if not near:
            if (found := self._search(number)) is not None:
                return found
            self._begin_again()
        while self._next < number:
            self._step()
        return self._step()

    def _search(self, number: int) -> Picture | None:
        """None when the file has no good time stamps, or does not land at this frame's."""
        if not self._times:
            return None
        time = self._times[number]
        later = self._times[number + 1] if number + 1 < self.frames else time + 1 / self.film.fps
        source = self._opened()
        try:
            source.seek((time + later) / 2)
            frame = source.step()
        except CompassError:
            return None
        if frame is None:
            return None
        with frame:
            if frame.time is None or abs(frame.time - time) > _SAME:
                return None
            self._next = number + 1
            return self.film.cropped(frame.rgb())

    def _begin_again(self) -> None:
        if self._source is not None:
            self._source.close()
        self._source, self._next = None, 0
        self._opened()

    def _opened(self) -> Source:
        if self._source is None:
            self._source = open_source(str(self.film.path), threads=2)
        return self._source

    def _step(self) -> Picture:
        frame = self._opened().step()
        if frame is None:
            raise IntegrityError(
                f"'{self.film.path}' should have {self.frames} frames and ends after {self._next}: it is cut off."
            )
        self._next += 1
        with frame:
            return self.film.cropped(frame.rgb())

    def _keep(self, number: int, picture: Picture) -> bytes:
        data = io.BytesIO()
        self._image.fromarray(picture).save(data, "JPEG", quality=88)
        self._kept[number] = data.getvalue()
        self._bytes += len(self._kept[number])
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return self._kept[number]


def _times_of(film: VideoFilm) -> list[float]:
    """When each frame is shown, by the packets alone; empty where they do not tell."""
    try:
        with av.open(str(film.path)) as container:
            stream = container.streams.video[0]
            stamps = [packet.pts for packet in container.demux(stream) if packet.size]
            base = float(stream.time_base or 0)
    except (av.error.FFmpegError, IndexError):
        return []
    if len(stamps) != film.frames or any(stamp is None for stamp in stamps):
        return []
    times = sorted(base * stamp for stamp in stamps if stamp is not None)
    return times if times[0] >= 0 and len(set(times)) == len(times) else []
