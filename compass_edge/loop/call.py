"""A call of a model, kept under the hash of its full input, and what came back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compass_edge.loop.events import Asked, Role
from compass_edge.loop.mark import Mark
from compass_edge.models import Clip, ProgressModel, Question, VisionLanguageModel


@dataclass(frozen=True, slots=True)
class Call:
    role: Role
    asked: Asked
    body: Clip | Question
    frame: Mark  # the newest it is shown
    key: str


@dataclass(frozen=True, slots=True)
class Failure:
    """No reply: it was late, or the model raised."""

    trouble: Literal["late", "missing"]
    detail: str


Reply: TypeAlias = float | str | Failure


@dataclass(frozen=True, slots=True)
class Models:
    orienter: VisionLanguageModel
    prm: ProgressModel
    verifier: VisionLanguageModel

    def names(self) -> dict[Role, str]:
        return {"orienter": self.orienter.name, "prm": self.prm.name, "verifier": self.verifier.name}

    def max_batch(self, role: Role) -> int:
        model: ProgressModel | VisionLanguageModel = getattr(self, role)
        return max(model.max_batch, 1)
