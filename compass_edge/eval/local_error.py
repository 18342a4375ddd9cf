"""The local error: what a progress model says within a step whose sentence and beginning are true, tick by tick.

Nothing is scored again: the scores are in the curves of the paired diagnosis, with the one that ends each step in the chained
curve alone, where the next step begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.episode import Episode
from compass_edge.eval.diagnosis import stretches
from compass_edge.eval.result import Result

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LocalScores:
    """Of one step, at each tick of it."""

    step: int  # from 0
    frames: NDArray[np.int64]  # since it began
    scores: Values
    truth: Values  # 0 to 1

    @property
    def errors(self) -> Values:
        return np.abs(self.scores - self.truth)


def local_scores(oracle: Result, chained: Result, episode: Episode, every: int) -> list[LocalScores]:
    """Of the steps that the film completes."""
    found, size = [], episode.size
    for step, stretch in enumerate(stretches(episode)[1:]):
        end = episode.truth[step].end
        if end >= episode.frames:
            continue
        frames = np.array(stretch.sampled(every), np.int64)
        scores = oracle.values[frames] * size / 100.0 - step
        scores[-1] = _anchor(oracle, chained, episode, step + 1) - _anchor(oracle, chained, episode, step)
        since = frames - stretch.first
        found.append(LocalScores(step, since, scores, since / (end - stretch.first)))
    return found


def _anchor(oracle: Result, chained: Result, episode: Episode, steps: int) -> float:
    """Where the model has ended so many steps: the two curves differ by that, and by where the steps truly end."""
    if steps == 0:
        return 0.0
    end = episode.truth[steps - 1].end
    return float((chained.values[end] - oracle.values[end]) * episode.size / 100.0 + steps)
