"""The progress model's exam: what it says at the end of a step that was done, under the sentence of one that was not.

A model that reads only the motion says 1 to everything that ends. The sentences make sense in the scene: another step of the
episode, or the same motion with another goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compass_edge.data.episode import Episode
from compass_edge.eval.bootstrap import Bootstrap, Estimate
from compass_edge.eval.diagnosis import Stretch, scored
from compass_edge.eval.method import Lazy
from compass_edge.eval.performed import Performed
from compass_edge.eval.result import Result
from compass_edge.eval.sampling import settings_at
from compass_edge.eval.untrue import other_steps, other_targets
from compass_edge.eval.wording import Wording
from compass_edge.loop.settings import Settings
from compass_edge.models import ProgressModel
from compass_edge.sim.dice import Dice

SENTENCE_EXAM = "sentence exam"
EDITION = 1
EACH = 2  # steps of an episode
OTHER_STEP, OTHER_TARGET = 0.0, 1.0


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """Mean scores, 0 to 1: 0 is right."""

    score: Estimate
    other_step: Estimate
    other_target: Estimate
    asked: int


class SentenceExam:
    """A method whose results alternate: which kind of sentence it was, and the score under it. No score: nan."""

    name = SENTENCE_EXAM

    def __init__(self, make: Callable[[], ProgressModel], settings: Settings | None, wording: Wording) -> None:
        self._prm, self._settings = Lazy(make), settings
        self._wording: Wording = wording

    def identity(self) -> Mapping[str, Any]:
        rules = self._settings
        return {
            "method": self.name,
            "edition": EDITION,
            "model": self._prm().name,
            "wording": self._wording,
            "sampling": None if rules is None else {"every": rules.every, "max_frames": rules.max_frames},
        }

    def run(self, episode: Episode) -> tuple[Result, ...]:
        rules = self._settings or settings_at(episode.fps)
        wrong = wrong_sentences(episode, self._wording)
        found = last_scores(self._prm(), episode, [stretch for _, stretch in wrong], rules)
        pairs = [value for (kind, _), score in zip(wrong, found, strict=True) for value in (kind, score)]
        return (Result(episode.id, self.name, np.array(pairs, np.float64)),)


def wrong_sentences(episode: Episode, wording: Wording) -> list[tuple[float, Stretch]]:
    """Of up to two steps, one sentence of each kind if there is one."""
    performed, dice = Performed.of(episode), Dice(episode.id, "sentences")
    found: list[list[tuple[float, Stretch]]] = []
    for step in dice.shuffled(range(episode.size)):
        first, last = episode.begins[step], episode.truth[step].end
        if last < episode.frames and len(found) < EACH:
            kinds = (
                (OTHER_STEP, other_steps(performed, step, first, last, wording)),
                (OTHER_TARGET, other_targets(performed, step, first, last)),
            )
            untrue = [(kind, Stretch(dice.choice(some).sentence, first, last)) for kind, some in kinds if some]
            found += [untrue] if untrue else []
    return [one for untrue in found for one in untrue]


def last_scores(model: ProgressModel, episode: Episode, stretches: list[Stretch], settings: Settings) -> list[float]:
    """Only the clip that ends with the stretch is scored."""
    found = scored(model, episode, stretches, settings, last_only=True)
    return [scores.get(stretch.last, np.nan) for scores, stretch in zip(found, stretches, strict=True)]


def score_sentences(results: Iterable[Result], episodes: Iterable[Episode]) -> SentenceScore:
    known = {episode.id: episode for episode in episodes}
    mine = sorted((one for one in results if one.method == SENTENCE_EXAM), key=lambda one: one.episode)
    asked = [[(kind, score) for kind, score in one.values.reshape(-1, 2) if np.isfinite(score)] for one in mine]
    drawn = Bootstrap([known[one.episode].task for one in mine])
    overall, step, target = (
        drawn.mean([np.array([score for kind, score in some if kind in kinds]) for some in asked])
        for kinds in ((OTHER_STEP, OTHER_TARGET), (OTHER_STEP,), (OTHER_TARGET,))
    )
    return SentenceScore(overall, step, target, sum(len(some) for some in asked))
