"""The Orienter's exam: the plan that it writes when it sees the first frame, beside the right one."""

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
from compass_edge.eval.verifier_exam import ask_all
from compass_edge.eval.wording import Wording, outcomes_of
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings
from compass_edge.roles.orienter import FirstReply, first, read_first
from compass_edge.roles.reply import InvalidReply

ORIENTER_EXAM = "orienter exam"
EDITION = 1


@dataclass(frozen=True, slots=True)
class OrienterScore:
    exact: Rate  # plans with the right outcomes in the right order
    sized: Rate  # with the right number of steps
    tasks: Mapping[str, Rate]  # exact ones
    invalid: int


class OrienterExam:
    """A method whose results tell of the plan: whether it is exact, its steps, and those that are right. -1 steps: no plan."""

    name = ORIENTER_EXAM

    def __init__(self, make: Callable[[], Models], settings: Settings | None, wording: Wording) -> None:
        self._models, self._settings = Lazy(make), settings
        self._wording: Wording = wording

    def identity(self) -> Mapping[str, Any]:
        return {
            "method": self.name,
            "edition": EDITION,
            "model": self._models().orienter.name,
            "wording": self._wording,
            "tau": self._settings.tau if self._settings else None,
            "max_steps": self._settings.max_steps if self._settings else None,
        }

    def run(self, episode: Episode) -> tuple[Result, ...]:
        rules = self._settings or settings_at(episode.fps)
        tau, right = rules.tau != "nowhere", outcomes_of(episode, self._wording)
        asked = first(episode.instruction, stills(episode, [0])[0], tau=tau, max_steps=rules.max_steps)
        (text,) = ask_all(self._models().orienter, [asked])
        reply = _read(text, tau, rules.max_steps)
        plan = [step.outcome for step in reply.plan.steps] if reply is not None and reply.plan is not None else []
        steps = -1.0 if reply is None else float(len(plan))
        return (Result(episode.id, self.name, np.array([float(plan == right), steps, float(len(right))])),)


def score_orienter(results: Iterable[Result], episodes: Iterable[Episode]) -> OrienterScore:
    known = {episode.id: episode for episode in episodes}
    tasks: dict[str, Rate] = {}
    sized, invalid = Rate(), 0
    for result in results:
        if result.method == ORIENTER_EXAM:
            exact, steps, right = result.values.tolist()
            task = known[result.episode].task
            tasks[task] = tasks.get(task, Rate()) + Rate(int(exact), 1)
            sized += Rate(int(steps == right), 1)
            invalid += steps < 0
    return OrienterScore(sum(tasks.values(), Rate()), sized, tasks, invalid)


def _read(text: str, tau: bool, max_steps: int) -> FirstReply | None:
    try:
        return read_first(text, tau=tau, max_steps=max_steps)
    except InvalidReply:
        return None
