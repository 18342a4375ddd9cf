"""The wording of steps: as the annotation has them, or as an Orienter that sees the first frame would put them.

A trained model gets an Orienter's words in the loop, and so it does when it is tested alone. Oracles know the annotation's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from compass_edge.data.episode import Episode, StepTruth
from compass_edge.eval.knowledge import told
from compass_edge.loop.plan import Subtask
from compass_edge.sim.subtasks import deeds, outcomes, subtasks

Wording = Literal["annotation", "orienter"]
_OUTCOME = 160  # characters that O's schema allows


def subtasks_of(episode: Episode, wording: Wording) -> list[Subtask]:
    return subtasks(episode) if wording == "orienter" else [_annotated(step) for step in episode.truth]


def outcomes_of(episode: Episode, wording: Wording) -> list[str]:
    """The plan that is right."""
    return outcomes(episode) if wording == "orienter" else [told(step.sentence, _OUTCOME) for step in episode.truth]


def in_full(episode: Episode, wording: Wording) -> list[Subtask]:
    """As `subtasks_of`, with every thing named: what no frame could contradict ("the block that the lamp showed") is not said."""
    return [deed.subtask() for deed in deeds(episode)] if wording == "orienter" else subtasks_of(episode, wording)


def reworded(episode: Episode, wording: Wording) -> Episode:
    """With these sentences for those of the annotation."""
    if wording == "annotation":
        return episode
    told_so = zip(episode.truth, subtasks_of(episode, wording), strict=True)
    return replace(episode, steps=tuple(replace(step, sentence=subtask.sentence) for step, subtask in told_so))


def _annotated(step: StepTruth) -> Subtask:
    return Subtask(told(step.sentence), step.before, step.tau, step.after, step.completion)
