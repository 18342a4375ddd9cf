"""Films with their stages, which of their steps are filmed tick by tick, and what a sample of them is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.models import Image, Question
from training.footage import EVERY, Footage
from training.stage import Stage

TAU = 0.9  # of questions with the expected transition: without it nobody could tell what it is good for
# How often a kind of step is shown: moves are of many kinds, lifts and lamps are learned soon.
_OFTEN = {"move": 3.0, "press": 2.0, "tap": 1.5, "lift": 1.5, "watch": 0.5}
# Where the Verifier last went wrong on tuning seeds (training.quiz).
STUBBORN = frozenset(("S3", "S4", "S7", "Q3", "Q6", "Q8", "R2", "R6", "R8"))
_HARD = 0.5  # of steps, where there are such, that are of hard tasks
NO_IMAGE = Image("")  # a sample names its frames: a film and the place of a picture in it
Frame = tuple[int, int]
Dice = np.random.Generator


@dataclass(slots=True)
class Sample:
    """A question and its reply; for P a clip and its progress. `given`: how much of the reply is not to be learned."""

    question: Question | None
    frames: list[Frame]
    reply: str = ""
    given: int = 0  # characters
    sentence: str = ""
    progress: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    counts: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # which of them are known
    case: str = ""
    about: tuple[Any, ...] = ()
    nearness: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 4), np.float32))  # (training.nearness)
    pointed: tuple[int, int, int] = (-1, -1, -1)  # numbers of things in the map of every frame (training.pointing)
    seen: dict[tuple[int, int], tuple[int, ...]] = field(
        default_factory=dict
    )  # what is read off what (training.guidance)


class Films:
    """Films with their stages, and which of their steps are filmed tick by tick."""

    def __init__(self, films: Sequence[Footage]) -> None:
        self.films = list(films)
        self.stages = [Stage(film.script) for film in films]
        self.place = [{frame: at for at, frame in enumerate(film.frames)} for film in films]
        self.steps: list[tuple[int, int]] = []
        self.by_kind: dict[str, list[tuple[int, int]]] = {}
        self._hard: dict[tuple[str, frozenset[str]], list[tuple[int, int]]] = {}
        for number, film in enumerate(films):
            for step, end in enumerate(film.ends):
                begin = film.ends[step - 1] if step else 0
                first, last = tick_at(begin), min(tick_at(end) + 2 * EVERY, len(film.shots) - 1) // EVERY * EVERY
                if all(frame in self.place[number] for frame in range(first, last + 1, EVERY)):
                    self.steps.append((number, step))
                    kind = self.stages[number].deeds[step].kind
                    self.by_kind.setdefault(kind, []).append((number, step))

    def begin(self, number: int, step: int) -> int:
        """Of a draft its only moment."""
        ends = self.films[number].ends
        return ends[step - 1] if step and ends else 0

    def nearest(self, number: int, frame: int) -> int:
        """The picture at that frame, or the next one before it."""
        return max(bisect_left(self.films[number].frames, frame + 1) - 1, 0)

    def ticks(self, number: int, first: int, last: int) -> list[int]:
        """Filmed ticks from the first frame to the last."""
        return [frame for frame in range(tick_at(first), last + 1, EVERY) if frame in self.place[number]]

    def any_step(self, dice: Dice, hard: frozenset[str] = STUBBORN) -> tuple[int, int]:
        """Of any task, and half of the time of a hard one where there are such."""
        kinds = list(self.by_kind)
        often = np.array([_OFTEN[kind] for kind in kinds])
        kind = kinds[dice.choice(len(kinds), p=often / often.sum())]
        steps = self.by_kind[kind]
        if dice.random() < _HARD:
            if (kind, hard) not in self._hard:
                self._hard[kind, hard] = [one for one in steps if self.films[one[0]].script.task in hard]
            steps = self._hard[kind, hard] or steps
        return steps[dice.integers(len(steps))]


def tick_at(frame: int) -> int:
    """The first tick that is not before the frame."""
    return -(-frame // EVERY) * EVERY
