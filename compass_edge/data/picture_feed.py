"""A feed of RGB pictures: what a host that pushes its own frames does, one picture whenever it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from compass_edge.data.film import Picture
from compass_edge.errors import UsageError
from compass_edge.frames.source import Source, SourceStats, StreamInfo, push_ring

if TYPE_CHECKING:
    from compass_edge._native import FrameRing


class PictureFeed:
    """Implements compass_edge.frames.source.Feed. The pictures all have the first one's size."""

    def __init__(self, pictures: Iterable[Picture], width: int, height: int, fps: float, frames: int) -> None:
        self._pictures = iter(pictures)
        self._pushed = 0
        self.state, self.failure = "running", ""
        self.ring: FrameRing = push_ring(width, height)
        self.info: dict[str, Any] = asdict(
            StreamInfo("", "rgb24", width, height, 0, fps, frames / fps, frames, live=False)
        )
        self._writer = self.ring.writer()

    @property
    def stats(self) -> dict[str, Any]:
        return asdict(SourceStats(packets=self._pushed, frames=self._pushed, copied=self._pushed))

    def step(self) -> str:
        picture = next(self._pictures, None)
        if picture is None:
            self.state = "ended"
        else:
            self._writer.push(picture)  # without a time: the intake counts by the rate
            self._pushed += 1
        return self.state

    def seek(self, time_s: float) -> None:
        raise UsageError(f"Pictures come in order and cannot be searched, and {time_s} s was asked for.")

    def start(self) -> None:
        raise UsageError("Pictures are stepped, not played.")

    def stop(self) -> None:
        pass


def picture_source(
    name: str, pictures: Iterable[Picture], *, width: int, height: int, fps: float, frames: int
) -> Source:
    return Source(name, PictureFeed(pictures, width, height, fps, frames), "pyav")
