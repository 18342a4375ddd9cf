"""Oracles: models that know the annotation. They answer the real questions, so that the whole chain around them is real.

Undamaged they show what the loop itself costs. Damaged by a known amount they show that the evaluation measures it. All are
pure functions of their input: whether a given question is answered wrongly is decided by a hash of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compass_edge.data.episode import Episode, StepTruth
from compass_edge.eval.knowledge import Knowledge, chance, told
from compass_edge.eval.sampling import settings_at
from compass_edge.loop.call import Models
from compass_edge.models import Cancelled, Clip, Image, OnText, Question
from compass_edge.roles.context import task_part
from compass_edge.roles.quote import quote

_OUTCOME, _CRITERION, _STATE = 160, 200, 320  # characters that O's schemas allow
_ADDED = StepTruth("Wait until the lamp has turned green.", 1)


@dataclass(frozen=True, slots=True)
class OraclePrm:
    """P: true progress within the step that the sentence means; of the whole episode, if it is the instruction.

    A step that is not complete stays below the score at which the loop's rule sees a completion: an oracle does not propose
    one early. With `early` it does, in that share of the steps: for a while half way through, it says 1.
    """

    knowledge: Knowledge
    bias: float = 0.0  # added to the progress of a step that is not complete
    early: float = 0.0  # alpha
    early_frames: int | None = (
        None  # two ticks at the film's rate unless it is said: the rule takes them for a completion
    )
    ceiling: float = 0.89
    seed: int = 0
    max_batch: int = 8

    @property
    def name(self) -> str:
        return f"oracle-prm bias={self.bias} early={self.early}/{self.early_frames} ceiling={self.ceiling} seed={self.seed}"

    def score(self, clips: Sequence[Clip]) -> list[float]:
        return [self._score(clip) for clip in clips]

    def _score(self, clip: Clip) -> float:
        _, frame = self.knowledge.episodes(clip.frames[-1])
        meant = self.knowledge.meant(clip.sentence, clip.frames[0])
        if meant is None:
            whole = self.knowledge.whole(clip.sentence, clip.frames[0])
            return (
                0.0 if whole is None else float(whole.progress(self.knowledge.by)[min(frame, whole.frames - 1)]) / 100
            )
        local = self.knowledge.local(meant, frame)
        if local >= 1.0:
            return 1.0
        drawn = chance("early", self.seed, meant.episode.film.key, meant.episode.instruction, meant.index)
        middle = (meant.begin + meant.end) // 2
        span = self.early_frames or 2 * settings_at(meant.episode.fps).every
        if drawn < self.early and middle <= frame < middle + span:
            return 1.0
        return min(max(local + self.bias, 0.0), self.ceiling)


@dataclass(frozen=True, slots=True)
class OracleOrienter:
    """O: the annotated steps as a plan, in their own words. With `plan_error` it drops or adds one, in that share of episodes."""

    knowledge: Knowledge
    plan_error: float = 0.0
    seed: int = 0
    max_batch: int = 8

    @property
    def name(self) -> str:
        return f"oracle-orienter plan_error={self.plan_error} seed={self.seed}"

    def ask(self, questions: Sequence[Question], on_text: OnText, _cancelled: Cancelled) -> list[str]:
        return [_written(index, self._answer(question), on_text) for index, question in enumerate(questions)]

    def plan(self, episode: Episode) -> list[StepTruth]:
        steps, drawn = list(episode.truth), (self.seed, episode.film.key, episode.instruction)
        if steps and chance("plan", *drawn) < self.plan_error:
            at = int(chance("where", *drawn) * len(steps))
            if len(steps) > 1 and chance("drop", *drawn) < 0.5:
                del steps[at]
            else:
                steps.insert(at, _ADDED)
        return steps

    def _answer(self, question: Question) -> dict[str, Any]:
        fields = question.schema["properties"]
        if "omitted" in fields:
            return {"omitted": []}
        steps = self.plan(self._episode(question))
        if "grounded" in fields:
            if not steps:
                return {"objects": [], "grounded": False, "plan": [], **_described(None, fields)}
            plan = [
                {
                    "outcome": told(step.sentence, _OUTCOME),
                    "criterion": _state(step.after, step, _CRITERION),
                    "times": 1,
                }
                for step in steps
            ]
            objects = [{"name": "objects of the task", "count": 1}]
            return {"objects": objects, "grounded": True, "plan": plan, **_described(steps[0], fields)}
        found = re.search(r"Next open step: (\d+)", _text(question))
        at = int(found.group(1)) - 1 if found else 0  # a plan without edits numbers its steps from 1
        return {"edits": [], **_described(steps[at], fields)}

    def _episode(self, question: Question) -> Episode:
        text = _text(question)
        image = next(part for part in question.parts if isinstance(part, Image))
        episodes, _ = self.knowledge.episodes(image)
        heads = ((episode, task_part(episode.instruction, 1).rsplit("\n", 2)[0]) for episode in episodes)
        return next((episode for episode, head in heads if head in text), episodes[0])


@dataclass(frozen=True, slots=True)
class OracleVerifier:
    """V: done if the step was completed between the first frame and the last.

    Damaged, it accepts a step that is not complete with probability `beta`, and rejects one that is with probability `gamma`.
    """

    knowledge: Knowledge
    beta: float = 0.0
    gamma: float = 0.0
    seed: int = 0
    max_batch: int = 8

    @property
    def name(self) -> str:
        return f"oracle-verifier beta={self.beta} gamma={self.gamma} seed={self.seed}"

    def ask(self, questions: Sequence[Question], on_text: OnText, _cancelled: Cancelled) -> list[str]:
        return [_written(index, self._answer(question), on_text) for index, question in enumerate(questions)]

    def _answer(self, question: Question) -> dict[str, Any]:
        text = _text(question)
        start, _, last = (part for part in question.parts if isinstance(part, Image))
        episodes, candidate = self.knowledge.episodes(last)
        _, began = self.knowledge.episodes(start)
        sentences = {told(step.sentence) for episode in episodes for step in episode.truth}
        sentence = next((one for one in sentences if f"# Step\n{quote(one, 480)}\n" in text), "")
        # One fact for every step that was verified: of steps that are called alike it tells which one this is.
        facts = len(re.findall(r"^- when step \d+ was completed: ", text, re.MULTILINE))
        meant = self.knowledge.meant(sentence, start, facts + 1 if facts else None)
        done = meant is not None and began < meant.end <= candidate
        wrong = chance("verdict", self.seed, question.digest(self.name)) < (self.gamma if done else self.beta)
        already = meant is not None and meant.end <= began
        verdict = "done" if done != wrong else "already_done" if already else "not_done"
        seen = {name: f"{name}: {sentence or 'nothing of it'}" for name in ("start", "during", "candidate", "change")}
        return {**seen, "count_start": None, "count_candidate": None, "verdict": verdict}


def oracles(episodes: Sequence[Episode]) -> Models:
    """Undamaged."""
    knowledge = Knowledge(episodes)
    return Models(OracleOrienter(knowledge), OraclePrm(knowledge), OracleVerifier(knowledge))


def _described(step: StepTruth | None, fields: dict[str, Any]) -> dict[str, Any]:
    words = {"subtask": "", "before": "", "tau": "", "after": "", "completion": "lasting"}
    if step is not None:
        words = {
            "subtask": told(step.sentence),
            "before": told(step.before, _STATE),
            "tau": _state(step.tau, step, _STATE),
            "after": told(step.after, _STATE),
            "completion": step.completion,
        }
    return {name: text for name, text in words.items() if name in fields}


def _state(text: str, step: StepTruth, limit: int) -> str:
    return told(text, limit) or told(step.sentence, limit)


def _text(question: Question) -> str:
    return "".join(part for part in question.parts if isinstance(part, str))


def _written(index: int, answer: dict[str, Any], on_text: OnText) -> str:
    text = json.dumps(answer)
    on_text(index, text)
    return text
