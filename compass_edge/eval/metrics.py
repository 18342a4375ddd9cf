"""Metrics: how far a curve is from the truth of its episode. All of it on the scale of 0 to 100, but for rho.

What the paper leaves open is decided here: see `spearman`, `boundaries` and `is_stalled`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compass_edge.data.episode import Episode, Local
from compass_edge.errors import UsageError
from compass_edge.eval.result import Result

Values = NDArray[np.float64]

# A curve has reached a boundary when it is this near, in steps: half of what the loop keeps back until V has accepted one.
TOLERANCE = 0.005
# A boundary is matched when it is predicted within so much of the episode's duration, in per cent.
MATCHED = 5.0


def mean_absolute_error(values: ArrayLike, truth: ArrayLike) -> float:
    return float(np.mean(np.abs(np.asarray(values, np.float64) - np.asarray(truth, np.float64))))


def average_ranks(values: ArrayLike) -> Values:
    """From 1; equal values share the mean of their ranks."""
    _, at, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[at.reshape(-1)], np.float64)


def spearman(values: ArrayLike) -> float:
    """Spearman's rho of a curve against time. A constant curve orders nothing: its rho is 0."""
    ranks = average_ranks(values)
    ranks = ranks - (ranks.size + 1) / 2
    time = np.arange(ranks.size) - (ranks.size - 1) / 2
    spread = float(np.sqrt((ranks**2).sum() * (time**2).sum()))
    return float(np.clip((ranks * time).sum() / spread, -1.0, 1.0)) if spread else 0.0


def boundaries(values: ArrayLike, episode: Episode) -> Values:
    """For each step that the film completes: how far off its predicted end is, in per cent of the duration.

    Step k is predicted to end at the first frame whose value is k/K of 100, or `TOLERANCE` of a step short of it. A curve that never
    gets there is charged the worst frame that it could have named: at least 50, so that no such boundary is ever matched.
    """
    curve, size = np.asarray(values, np.float64), episode.size
    ends = np.array([step.end for step in episode.truth[: episode.completed]], np.int64)
    levels = 100.0 * (np.arange(1, ends.size + 1) - TOLERANCE) / max(size, 1)
    highest = np.maximum.accumulate(curve)
    named = np.searchsorted(highest, levels, side="left")
    worst = np.maximum(ends, episode.frames - ends)
    off = np.where(named < curve.size, np.abs(named - ends), worst)
    return np.asarray(100.0 * off / episode.frames, np.float64)


def end_errors(values: ArrayLike, episode: Episode) -> Values:
    """For each step k that the film completes: the error in the frame in which it is complete, where k/K of 100 is right."""
    curve = np.asarray(values, np.float64)
    ends = [step.end for step in episode.truth[: episode.completed]]
    right = 100.0 * np.arange(1, len(ends) + 1) / max(episode.size, 1)
    return np.asarray(np.abs(curve[ends] - right), np.float64)


def is_stalled(result: Result, episode: Episode) -> bool:
    """The film carries out the whole instruction, and the loop ends with a step that V has not accepted, whatever the reason."""
    if result.trace is None or not episode.truth:
        return False
    return episode.completed == episode.size and result.trace.outcome != "done"


@dataclass(frozen=True, slots=True)
class Scores:
    """Of one curve on one episode."""

    mae: float
    rho: float
    boundaries: Values
    end_errors: Values
    stalled: bool

    @property
    def matched(self) -> NDArray[np.bool_]:
        return self.boundaries <= MATCHED


def measure(result: Result, episode: Episode, by: Local = "time") -> Scores:
    values = result.values
    if result.episode != episode.id or values.shape != (episode.frames,) or not np.isfinite(values).all():
        raise UsageError(
            f"A result of episode '{episode.id}' must have a finite value for each of its {episode.frames} frames, and one of "
            f"'{result.episode}' with the shape {values.shape} came."
        )
    return Scores(
        mean_absolute_error(values, episode.progress(by)),
        spearman(values),
        boundaries(values, episode),
        end_errors(values, episode),
        is_stalled(result, episode),
    )
