"""The paired diagnosis: what a progress model says of an episode without context, and with it. For any ProgressModel.

Three curves of the same frozen model:
- without: the whole episode, under its instruction;
- oracle: each annotated step's clip under its own sentence, placed where the step truly is: (k - 1 + score) / K;
- chained: the same scores, placed where the model itself ended the step before. The first step begins at 0, and each one
  begins where the last left off: the sum of the scores at the ends of those before it, over K. A model that closes every
  step at 1 chains without loss; one that closes them at 0.8 falls behind by a fifth of a step each time.

Sampled are every n-th frame from the start of a clip on (without settings three a second), and its last: for a step the frame
that completes it. A clip ends in the frame that is scored. Between scores the curve is linear, after the last one it stays. With context, once every step is
complete nothing is left to score: the oracle's curve is 100 from there on, the chained one stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.episode import Episode
from compass_edge.errors import CompassError
from compass_edge.eval.prefix import Prefix
from compass_edge.eval.result import Result
from compass_edge.eval.sampling import settings_at
from compass_edge.loop.settings import Settings
from compass_edge.models import Clip, Image, ProgressModel

Values = NDArray[np.float64]
WITHOUT, ORACLE, CHAINED = "without context", "oracle context", "self-chained"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Frames to be scored together under one sentence."""

    sentence: str
    first: int
    last: int  # scored too

    def sampled(self, every: int) -> list[int]:
        return sorted({*range(self.first, self.last + 1, every), self.last})


@dataclass(frozen=True, slots=True)
class Pair:
    """An annotated step: the mean absolute error of one model in it, without and with context."""

    episode: str
    step: int  # k, from 1
    form: str | None
    without: float
    oracle: float
    chained: float


@dataclass(frozen=True, slots=True)
class Diagnosis:
    without: Result
    oracle: Result
    chained: Result

    @property
    def results(self) -> tuple[Result, Result, Result]:
        return self.without, self.oracle, self.chained


def method_name(model: str, setting: str) -> str:
    return f"{model}, {setting}"


def without_context(model: ProgressModel, episode: Episode, settings: Settings | None = None) -> Result:
    """Needs no annotation."""
    rules = settings or settings_at(episode.fps)
    stretch = Stretch(episode.instruction, 0, episode.frames - 1)
    (scores,) = scored(model, episode, [stretch], rules)
    values = 100.0 * _curve(scores, np.arange(episode.frames))
    return Result(episode.id, method_name(model.name, WITHOUT), values)


def diagnose(model: ProgressModel, episode: Episode, settings: Settings | None = None) -> Diagnosis:
    """All three, in one pass over the film."""
    found = scored(model, episode, stretches(episode), settings or settings_at(episode.fps))
    return diagnosis_of(model.name, episode, found)


def stretches(episode: Episode) -> list[Stretch]:
    """What is scored for the diagnosis: the whole episode, and each annotated step."""
    last = episode.frames - 1
    steps = [
        Stretch(step.sentence, begin, min(step.end, last))
        for begin, step in zip(episode.begins, episode.truth, strict=True)
        if begin <= last
    ]
    return [Stretch(episode.instruction, 0, last), *steps]


def diagnosis_of(model: str, episode: Episode, found: Sequence[dict[int, float]]) -> Diagnosis:
    """The three curves, from the scores of these stretches."""
    (whole, *local), steps = found, stretches(episode)[1:]
    oracle, chained, anchor = np.full(episode.frames, 100.0 if episode.truth else 0.0), np.zeros(episode.frames), 0.0
    for index, (stretch, scores) in enumerate(zip(steps, local, strict=True)):
        frames = np.arange(stretch.first, min(episode.truth[index].end, episode.frames))
        curve = _curve(scores, frames)
        oracle[frames] = 100.0 * (index + curve) / episode.size
        chained[frames] = 100.0 * (anchor + curve) / episode.size
        anchor += float(_curve(scores, np.array([stretch.last]))[0])
        chained[frames[-1] + 1 :] = 100.0 * anchor / episode.size
    named = {
        setting: Result(episode.id, method_name(model, setting), values)
        for setting, values in (
            (WITHOUT, 100.0 * _curve(whole, np.arange(episode.frames))),
            (ORACLE, oracle),
            (CHAINED, chained),
        )
    }
    return Diagnosis(named[WITHOUT], named[ORACLE], named[CHAINED])


def pairs(diagnosis: Diagnosis, episode: Episode) -> list[Pair]:
    """One for each annotated step, over the frames in which it is the active one."""
    truth, found = episode.progress(), []
    for index, (begin, step) in enumerate(zip(episode.begins, episode.truth, strict=True)):
        frames = slice(begin, min(step.end, episode.frames))
        if begin < episode.frames:
            without, oracle, chained = (
                float(np.abs(result.values[frames] - truth[frames]).mean()) for result in diagnosis.results
            )
            form = step.forms[0] if step.forms else episode.form
            found.append(Pair(episode.id, index + 1, form, without, oracle, chained))
    return found


def scored(
    model: ProgressModel, episode: Episode, asked: Sequence[Stretch], settings: Settings, *, last_only: bool = False
) -> list[dict[int, float]]:
    """For each stretch: the model's score at each sampled frame. The film is read once; no picture is kept that no clip holds.

    As in the loop a score that is no number leaves its frame without one. `last_only`: what leads to the last frame of a stretch
    is shown, and not scored.
    """
    found: list[dict[int, float]] = [{} for _ in asked]
    prefixes = [Prefix(stretch.sentence, settings.max_frames) for stretch in asked]
    wanted: dict[int, list[int]] = {}
    for index, stretch in enumerate(asked):
        for frame in stretch.sampled(settings.every):
            wanted.setdefault(frame, []).append(index)
    waiting: list[tuple[int, int, Clip]] = []
    for number, picture in episode.film.pictures(1, max(wanted, default=-1) + 1):
        image = Image(f"{episode.film.key}/{number}", picture)
        for index in wanted.pop(number, ()):
            clip = prefixes[index].with_frame(image)
            if last_only and number < asked[index].last:
                continue
            waiting.append((index, number, clip))
            if len(waiting) >= max(model.max_batch, 1):
                _score(model, waiting, found)
    _score(model, waiting, found)
    if wanted:
        raise CompassError(
            f"The film of episode '{episode.id}' must have {episode.frames} frames, and frame {min(wanted)} did not come."
        )
    return found


def _score(model: ProgressModel, waiting: list[tuple[int, int, Clip]], found: list[dict[int, float]]) -> None:
    if not waiting:
        return
    scores = [float(score) for score in model.score([clip for _, _, clip in waiting])]
    if len(scores) != len(waiting):
        raise CompassError(f"'{model.name}' was given {len(waiting)} clips and gave {len(scores)} scores.")
    for (index, frame, _), score in zip(waiting, scores, strict=True):
        if np.isfinite(score):
            found[index][frame] = min(max(score, 0.0), 1.0)
    waiting.clear()


def _curve(scores: dict[int, float], frames: NDArray[np.int64]) -> Values:
    """Linear between the scores. 0 if there is none."""
    known = sorted(scores)
    if not known:
        return np.zeros(frames.size)
    return np.interp(frames, known, [scores[frame] for frame in known])
