"""Numbered pictures, and what comes out of a film again."""

from __future__ import annotations

from pathlib import Path

from compass_edge.data.film import Film
from compass_edge.data.film_writer import FilmWriter
from compass_edge.frames.clip import clip_frame, read_number
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick

SIZE = (160, 96)


def shoot(path: Path, frames: int = 37, fps: float = 10, first: int = 0) -> Path:
    """A film whose pictures show their numbers."""
    with FilmWriter(path, fps, *SIZE) as film:
        for number in range(first, first + frames):
            film.add(clip_frame(number, *SIZE))
    return path


def numbers_shown(film: Film, every: int = 1, stop: int | None = None) -> list[tuple[int, int]]:
    """Each frame's number, and the one that its picture shows."""
    return [(number, read_number(picture)) for number, picture in film.pictures(every, stop)]


def all_ticks(film: Film, stop: int | None = None, every: int = 10) -> list[Tick]:
    ticks = film.ticks(Settings(every=every), stop)
    found: list[Tick] = []
    while (tick := ticks.after(found[-1].mark.seq if found else -1)) is not None:
        found.append(tick)
        assert ticks.get(tick.mark.seq).image == tick.image
    assert ticks.over
    return found
