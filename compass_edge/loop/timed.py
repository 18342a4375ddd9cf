"""Timed models: of every call its role, when it began, and how many questions or clips it held. What they answer, and their names,
stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.models import Cancelled, Clip, OnText, ProgressModel, Question, VisionLanguageModel

Clock = Callable[[], int]  # nanoseconds
OnCall = Callable[[Role, int, int], None]  # role, when it began, how many; when it is over, from any thread


def timed(models: Models, clock: Clock, on_call: OnCall) -> Models:
    return Models(
        _Talker(clock, on_call, "orienter", models.orienter),
        _Scorer(clock, on_call, models.prm),
        _Talker(clock, on_call, "verifier", models.verifier),
    )


@dataclass(frozen=True, slots=True)
class _Scorer:
    clock: Clock
    on_call: OnCall
    model: ProgressModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_batch(self) -> int:
        return self.model.max_batch

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        began_ns = self.clock()
        try:
            return self.model.score(clips)
        finally:
            self.on_call("prm", began_ns, len(clips))


@dataclass(frozen=True, slots=True)
class _Talker:
    clock: Clock
    on_call: OnCall
    role: Role
    model: VisionLanguageModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_batch(self) -> int:
        return self.model.max_batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        began_ns = self.clock()
        try:
            return self.model.ask(questions, on_text, cancelled)
        finally:
            self.on_call(self.role, began_ns, len(questions))
