"""The result of a method on an episode: its curve, and what the loop did to get it. Everything else is computed from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compass_edge.loop.events import Outcome


@dataclass(frozen=True, slots=True)
class Ruling:
    """A completion that P proposed, and what V made of it."""

    step: int  # k, from 1, as the Navigator counts
    frame: int
    accepted: bool
    true: bool  # by the annotation the step was complete there, and had not been when it began


@dataclass(frozen=True, slots=True)
class LoopTrace:
    """Of a run of the loop: what the theorem's terms are measured from.

    Where there is a plan of K steps, a value is exactly 100 ((position - 1) + local) / K; before, it is 0.
    """

    position: NDArray[np.int64]  # k_t of every frame, 1 to K + 1 of the loop's own plan; 0 while there is none
    local: NDArray[np.float64]  # the estimate within the step that is reported, 0 to 1
    plan: tuple[str, ...]  # outcomes of the final plan
    plan_matches: bool  # as many steps as the annotation has, in every revision
    rulings: tuple[Ruling, ...]
    outcome: Outcome
    verdicts: int
    seconds: dict[str, float]  # by role: what its calls took together
    calls: dict[str, int]  # by role, calls that were made early and never needed included
    invalid: dict[str, int] = field(default_factory=dict)  # by role: replies that could not be used


@dataclass(frozen=True, slots=True)
class Result:
    episode: str
    method: str
    values: NDArray[np.float64]  # 0 to 100, one a frame; of an exam: answers, as it says
    trace: LoopTrace | None = None  # None: the method is not a loop
