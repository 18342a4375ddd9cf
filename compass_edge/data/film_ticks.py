"""Ticks of a film: read as any recording is, with digests that are known without looking at the pixels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from compass_edge.frames.source import Source
from compass_edge.loop.intake import RecordedTicks
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick
from compass_edge.models import Image

if TYPE_CHECKING:
    from compass_edge._native import Frame


class Excerpt(Source):
    """The next `frames` frames of a source, as if it ended there."""

    def __init__(self, source: Source, frames: int) -> None:
        super().__init__(source.url, source._feed, source.backend)
        self._left = frames

    def step(self) -> Frame | None:
        if self._left <= 0:
            return None
        self._left -= 1
        return super().step()


class FilmTicks:
    """A tick's digest is `key/number`. `start_s`: where in its file the film begins; times count from there."""

    def __init__(self, source: Source, settings: Settings, key: str, start_s: float = 0.0) -> None:
        self._inner, self._key = RecordedTicks(source, settings), key
        self._start_ns = round(start_s * 1e9)

    @property
    def failure(self) -> str:
        return self._inner.failure

    def after(self, seq: int) -> Tick | None:
        return self._named(self._inner.after(seq))

    @property
    def over(self) -> bool:
        return self._inner.over

    def newest(self) -> Tick | None:
        return self._named(self._inner.newest())

    def due_ns(self) -> int | None:
        return self._inner.due_ns()

    def get(self, seq: int) -> Tick:
        return self._name(self._inner.get(seq))

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:
        self._inner.let_go(keep, since, used)

    def _named(self, tick: Tick | None) -> Tick | None:
        return None if tick is None else self._name(tick)

    def _name(self, tick: Tick) -> Tick:
        mark = tick.mark
        if self._start_ns:
            mark = replace(mark, captured_ns=max(mark.captured_ns - self._start_ns, 0))
        image = Image(f"{self._key}/{mark.seq}", tick.image.pixels)
        # Nothing is missing before a film's first frame, though the source was sought there.
        return replace(tick, mark=mark, image=image, gap=tick.gap if mark.seq else "")
