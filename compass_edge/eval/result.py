"""The result of a method on an episode: its curve, and what the loop did to get it. Everything else is computed from it."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Of a run of the loop: what the theorem's terms are measured from."""

    position: NDArray[np.int64]  # k_t of every frame, 1 to K + 1 of the loop's own plan; 0 while there is none
    local: NDArray[np.float64]  # P's estimate within the step, 0 to 1
    plan: tuple[str, ...]  # outcomes of the final plan
    plan_matches: bool  # as many steps as the annotation has
    rulings: tuple[Ruling, ...]
    outcome: Outcome
    verdicts: int
    seconds: dict[str, float]  # by role: what its calls took together
    calls: dict[str, int]


@dataclass(frozen=True, slots=True)
class Result:
    episode: str
    method: str
    values: NDArray[np.float64]  # 0 to 100, one a frame
    trace: LoopTrace | None = None  # None: the method is not a loop
