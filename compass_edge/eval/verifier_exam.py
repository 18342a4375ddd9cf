"""The Verifier's exam: questions with known answers about single steps, outside of the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compass_edge.data.episode import Episode
from compass_edge.eval.method import Lazy
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import Result
from compass_edge.eval.sampling import settings_at
from compass_edge.eval.stills import stills
from compass_edge.eval.verifier_questions import ACCEPTED, CASES, Asked, Case, verifier_questions
from compass_edge.eval.wording import Wording
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings
from compass_edge.models import Image, Question, VisionLanguageModel
from compass_edge.roles.reply import InvalidReply
from compass_edge.roles.verifier import question, read

VERIFIER_EXAM = "verifier exam"
EDITION = 1  # of the questions
REJECTED, YES, INVALID = 0.0, 1.0, -1.0


@dataclass(frozen=True, slots=True)
class VerifierScore:
    """`right` are the answers that were right: accepted where it should be, rejected elsewhere. Invalid replies are rejections."""

    right: Rate
    false_accepts: Rate  # of those that should be rejected
    cases: Mapping[Case, Rate]  # right answers
    invalid: int


class VerifierExam:
    """A method whose results have an answer for each question of the episode: accepted, rejected or invalid."""

    name = VERIFIER_EXAM

    def __init__(self, make: Callable[[], Models], settings: Settings | None, wording: Wording) -> None:
        self._models, self._settings = Lazy(make), settings
        self._wording: Wording = wording

    def identity(self) -> Mapping[str, Any]:
        return {
            "method": self.name,
            "edition": EDITION,
            "model": self._models().verifier.name,
            "wording": self._wording,
            "every": self._settings.every if self._settings else None,
            "tau": self._settings.tau if self._settings else None,
        }

    def run(self, episode: Episode) -> tuple[Result, ...]:
        rules = self._settings or settings_at(episode.fps)
        asked = verifier_questions(episode, rules.every, self._wording)
        images = stills(episode, {frame for one in asked for frame in one.frames})
        questions = [_question(one, images, tau=rules.tau == "everywhere") for one in asked]
        answers = [_answer(text) for text in ask_all(self._models().verifier, questions)]
        return (Result(episode.id, self.name, np.array(answers, np.float64)),)


def ask_all(model: VisionLanguageModel, questions: list[Question]) -> list[str]:
    most = max(model.max_batch, 1)
    texts: list[str] = []
    for first in range(0, len(questions), most):
        texts += model.ask(questions[first : first + most], lambda place, text: None, lambda: False)
    return texts


def score_verifier(
    results: Iterable[Result], episodes: Iterable[Episode], settings: Settings | None, wording: Wording
) -> VerifierScore:
    """The questions are built again: they are the same for the same episode."""
    known = {episode.id: episode for episode in episodes}
    cases = {case: Rate() for case in CASES}
    false, invalid = Rate(), 0
    for result in results:
        if result.method != VERIFIER_EXAM:
            continue
        episode = known[result.episode]
        asked = verifier_questions(episode, (settings or settings_at(episode.fps)).every, wording)
        for one, answer in zip(asked, result.values.tolist(), strict=True):
            accepted = answer == YES
            cases[one.case] += Rate(int(accepted == one.right), 1)
            false += Rate() if one.case == ACCEPTED else Rate(int(accepted), 1)
            invalid += answer == INVALID
    return VerifierScore(sum(cases.values(), Rate()), false, cases, invalid)


def _question(asked: Asked, images: Mapping[int, Image], *, tau: bool) -> Question:
    start, during, candidate = (images[frame] for frame in asked.frames)
    return question(asked.subtask, asked.memory, start, during, candidate, tau=tau)


def _answer(text: str) -> float:
    try:
        return YES if read(text).accepted else REJECTED
    except InvalidReply:
        return INVALID
