"""The blind predictor: knows how long a step has been going on and what kind of step it is, and sees nothing.

What it says is the median, over the simulator's tuning episodes, of how far such a step is after so long, of those that are not
over. A model that is no better has not looked. `python -m compass_edge.eval.blind_fit` makes the table again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from compass_edge.data.episode import Episode, StepTruth
from compass_edge.eval.diagnosis import Diagnosis, diagnosis_of, stretches
from compass_edge.eval.sampling import settings_at
from compass_edge.loop.plan import Completion
from compass_edge.loop.settings import Settings

BLIND = "blind"
TABLE = Path(__file__).with_name("blind.json")
WHOLE = "whole"  # a task from its beginning to its end, for the blind without context
_FIRST_WORDS = {"press": "press", "lift": "lift", "move": "carry", "tap": "tap", "wait": "watch"}
_COMPLETIONS: Mapping[Completion, str] = {"brief": "press", "observation": "watch", "lasting": "carry"}


@dataclass(frozen=True, slots=True)
class BlindTable:
    fps: float
    medians: Mapping[str, Sequence[float]]  # of each kind, frame by frame since the step began

    def at(self, kind: str, seconds: float) -> float:
        """After more than any was seen to take, the last one."""
        medians = self.medians[kind]
        return medians[min(round(seconds * self.fps), len(medians) - 1)]


@lru_cache(maxsize=1)
def blind_table() -> BlindTable:
    values = json.loads(TABLE.read_text("utf-8"))
    return BlindTable(values["fps"], values["medians"])


def kind_of(step: StepTruth) -> str:
    """By the first word of its sentence; of a sentence that is not the simulator's, by how it ends."""
    word = step.sentence.split()[0].lower() if step.sentence.split() else ""
    return _FIRST_WORDS.get(word) or _COMPLETIONS[step.completion]


def blind_diagnosis(episode: Episode, settings: Settings | None = None, table: BlindTable | None = None) -> Diagnosis:
    """Its three curves, at the same frames as a progress model's."""
    known, every = table or blind_table(), (settings or settings_at(episode.fps)).every
    kinds = [WHOLE, *(kind_of(step) for step in episode.truth)]
    found = [
        {frame: known.at(kind, (frame - stretch.first) / episode.fps) for frame in stretch.sampled(every)}
        for kind, stretch in zip(kinds, stretches(episode), strict=False)
    ]
    return diagnosis_of(BLIND, episode, found)
