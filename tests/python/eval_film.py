"""Films and episodes in memory: tiny pictures, any number of frames, steps of any length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compass_edge.data.episode import Episode, Form, Kind, StepTruth
from compass_edge.data.film import Picture
from compass_edge.loop.mark import Mark
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick
from compass_edge.models import Image

_PICTURES = [np.full((2, 2, 3), level, np.uint8) for level in range(256)]


class MemoryTicks:
    """A recording that is all there. What was let go is gone."""

    def __init__(self, film: MemoryFilm, settings: Settings, stop: int) -> None:
        self._seqs = sorted({*range(0, stop, settings.every), stop - 1})
        self._film, self._read, self._gone = film, -1, set[int]()

    def _tick(self, seq: int) -> Tick:
        return Tick(Mark(seq, seq * 10**8), Image(f"{self._film.key}/{seq}", self._film.picture(seq)))

    def after(self, seq: int) -> Tick | None:
        place = bisect_right(self._seqs, seq)
        self._read = max(self._read, self._seqs[min(place, len(self._seqs) - 1)])
        return self._tick(self._seqs[place]) if place < len(self._seqs) else None

    @property
    def over(self) -> bool:
        return True

    def newest(self) -> Tick | None:
        return self._tick(self._read) if self._read >= 0 else None

    def due_ns(self) -> int | None:
        return None

    def get(self, seq: int) -> Tick:
        if seq in self._gone:
            raise KeyError(f"tick {seq} was let go")
        return self._tick(seq)

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:  # noqa: ARG002
        self._gone |= {seq for seq in self._seqs if seq < since and seq not in keep}


@dataclass(frozen=True)
class MemoryFilm:
    key: str
    frames: int

    def picture(self, number: int) -> Picture:
        return _PICTURES[number % 256]

    def pictures(self, every: int = 1, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
        for number in range(0, self.frames if stop is None else min(stop, self.frames), every):
            yield number, self.picture(number)

    def ticks(self, settings: Settings, stop: int | None = None) -> MemoryTicks:
        return MemoryTicks(self, settings, self.frames if stop is None else min(stop, self.frames))


def episode(
    ends: Sequence[int],
    frames: int | None = None,
    *,
    id: str = "T/0",
    task: str = "T",
    form: Form | None = None,
    forms: Sequence[tuple[Form, ...]] = (),
    sentences: Sequence[str] = (),
    instruction: str = "",
    film: MemoryFilm | None = None,
    kind: Kind = "positive",
    fps: float = 30.0,
) -> Episode:
    """Steps that end at these frames; by default the film is over with the last one."""
    length = frames if frames is not None else ends[-1] + 1
    steps = tuple(
        StepTruth(
            sentences[index] if sentences else f"Do part {index + 1} of {id}.",
            end,
            forms[index] if forms else (),
            tau=f"part {index + 1} changes",
            after=f"part {index + 1} is done",
        )
        for index, end in enumerate(ends)
    )
    shown = film or MemoryFilm(f"film of {id}", length)
    return Episode(id, task, instruction or f"Do all of {id}.", shown, length, fps, steps, form, kind)
