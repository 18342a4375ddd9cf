"""Material of a course: films in several paints, openings, films for examinations; and batches drawn of it, of about one length."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from training.clips import clips
from training.films import Films, Sample
from training.footage import Footage, is_training, is_tuning, load
from training.paint import shuffled
from training.samples import family
from training.stills import load_stills

_FRAMES = 90  # of all clips of a process
_PAINTINGS = 4  # of a film


class Material:
    """Films and openings, each in several paints; other places, and the films of tuning seeds, as they are."""

    def __init__(self, footage: Path, stills: Path, dice: np.random.Generator) -> None:
        def painted(films: list[Footage], count: int) -> list[Footage]:
            return [*films, *(film.painted(shuffled(dice)) for film in films for _ in range(count - 1))]

        self.films = Films(painted(load(footage, is_training), _PAINTINGS))
        self.doors = Films(painted(load_stills(stills, "opening"), 2))
        self.strangers = Films(load_stills(stills, "stranger"))
        self.judges = Films(load(footage, is_tuning))


def drawn(films: Films, kind: str, text: bool, count: int, dice: np.random.Generator, window: float) -> list[Sample]:
    """Clips of about one length, as many as a batch has room for; of anything else so many.

    `window`, 0 to 1: how long they are among their like, the same in all processes, so that none waits for another.
    """
    if kind != "clip":
        # Of twice as many, neighbours in length: what is filled up to the longest is computed for nothing.
        some = sorted((family(films, kind, dice, text=text) for _ in range(2 * count)), key=lambda one: _length(one[0]))
        first = round(window * count)
        return [sample for one in some[first : first + count] for sample in one]
    pivot = sorted((clips(films, dice) for _ in range(4)), key=lambda one: len(one[0].frames))[min(int(window * 4), 3)]
    found, length = list(pivot), len(pivot[0].frames)
    while len(found) * length <= _FRAMES:
        one = clips(films, dice)
        if abs(len(one[0].frames) - length) <= 0.2 * length:
            found += one
    most = max(_FRAMES // length, 2)
    return found[:most]


def _length(sample: Sample) -> int:
    parts = sample.question.parts if sample.question is not None else ()
    return len(sample.reply) + sum(len(part) for part in parts if isinstance(part, str))
