"""A film in a video file: the whole of it, a stretch of it, or a part of its picture."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from compass_edge.data.film import Picture
from compass_edge.data.film_ticks import Excerpt, FilmTicks
from compass_edge.data.picture_feed import picture_source
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError, UsageError
from compass_edge.frames.source import Source, StreamInfo, open_source
from compass_edge.loop.settings import Settings

Crop = tuple[int, int, int, int]  # left, top, width, height

_USUAL_RATE = 30.0  # of a file that does not say


class VideoFilm:
    """Implements compass_edge.data.film.Film. Opens the file when it is first asked for something, and holds it open never.

    `crop` is left, top, width, height. `start_s` and `frames` take a stretch out of a file that holds several episodes.
    """

    def __init__(
        self, path: Path | str, crop: Crop | None = None, *, start_s: float = 0.0, frames: int | None = None
    ) -> None:
        self.path, self.crop, self.start_s = Path(path), crop, start_s
        self._frames = frames
        self._about: StreamInfo | None = None
        self._key = ""
        if crop is not None and (min(crop[:2]) < 0 or min(crop[2:]) < 1):
            raise UsageError(f"A crop is left, top, width, height with a width and height above 0, and {crop} came.")
        if not (math.isfinite(start_s) and start_s >= 0) or (frames is not None and frames < 1):
            raise UsageError(f"A film begins at 0 s or later and has 1 frame or more, and {start_s} s, {frames} came.")

    @property
    def key(self) -> str:
        if not self._key:
            part = "" if self.crop is None else "-" + "x".join(map(str, self.crop))
            part += "" if not self.start_s else f"@{self.start_s:.6f}"
            self._key = _hash_of(self.path, self._stat()) + part
        return self._key

    @property
    def frames(self) -> int:
        if self._frames is None:
            self._frames = self.about.frames or self._count()
        return self._frames

    @property
    def fps(self) -> float:
        return self.about.frame_rate or _USUAL_RATE

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, after the crop."""
        return (self.about.width, self.about.height) if self.crop is None else (self.crop[2], self.crop[3])

    @property
    def about(self) -> StreamInfo:
        if self._about is None:
            with self._open(sought=False) as source:
                self._about = source.info
            self._check_crop(self._about)
        return self._about

    def pictures(self, every: int = 1, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
        stop = self.frames if stop is None else min(stop, self.frames)
        if every < 1:
            raise UsageError(f"Every n-th frame needs an n of at least 1, and {every} came.")
        with self._open() as source:
            for number in range(stop):
                frame = source.step()
                if frame is None:
                    raise IntegrityError(
                        f"'{self.path}' should have {self.frames} frames and ends after {number}: its recording or "
                        "copying was cut off. Fetch or record it again."
                    )
                with frame:
                    if number % every == 0:
                        yield number, self.cropped(frame.rgb())

    def ticks(self, settings: Settings, stop: int | None = None) -> FilmTicks:
        stop = self.frames if stop is None else min(stop, self.frames)
        if self.crop is not None:
            pictures = (picture for _, picture in self.pictures(stop=stop))
            width, height = self.size
            source = picture_source(str(self.path), pictures, width=width, height=height, fps=self.fps, frames=stop)
            return FilmTicks(source, settings, self.key)
        return FilmTicks(Excerpt(self._open(), stop), settings, self.key, self.start_s)

    def _open(self, *, sought: bool = True) -> Source:
        self._stat()
        try:
            source = open_source(str(self.path))
            if sought and self.start_s:
                # The middle of the frame: a time that was rounded may lie just before its beginning.
                source.seek(self.start_s + 0.5 / (source.info.frame_rate or _USUAL_RATE))
        except EnvironmentFault:
            raise
        except CompassError as error:
            raise IntegrityError(f"'{self.path}' should be a video, and it cannot be read: {error}") from error
        return source

    def _stat(self) -> tuple[int, int]:
        try:
            stat = self.path.stat()
        except OSError as error:
            raise IntegrityError(f"The video '{self.path}' cannot be read: {error.strerror}.") from error
        return stat.st_size, stat.st_mtime_ns

    def _count(self) -> int:
        with self._open() as source:
            count = 0
            for frame in source:
                frame.release()
                count += 1
        return count

    def _check_crop(self, info: StreamInfo) -> None:
        if self.crop is not None:
            left, top, width, height = self.crop
            if left + width > info.width or top + height > info.height:
                raise IntegrityError(
                    f"The crop {list(self.crop)} (left, top, width, height) leaves the {info.width}x{info.height} picture "
                    f"of '{self.path}'."
                )

    def cropped(self, picture: Picture) -> Picture:
        if self.crop is None:
            return picture
        left, top, width, height = self.crop
        return np.ascontiguousarray(picture[top : top + height, left : left + width])


@lru_cache(maxsize=4096)
def _hash_of(path: Path, _size_and_time: tuple[int, int]) -> str:  # a file that changes is read again
    hashed = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            hashed.update(piece)
    return hashed.hexdigest()
