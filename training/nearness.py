"""Nearness: how far the hand is from what a sentence is about, whether it is being done, and whether a thing stands at its goal.

Learned beside P's progress, and thrown away.

Progress within a tap is how near the closed hand has come to the mat that was named. Some numbers a frame say so at once; left to progress
alone, which is only linear in time, a decoder has to find out what it depends on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from compass_edge.sim.shot import Shot
from training.stage import Part, Stage, thing_word

_FAR = 0.3  # metres
_ACTING = {"lift": "up", "press": "down", "tap": "touched"}
COLUMNS = 4  # to the thing, to the goal, being done, at the goal


def nearness(
    stage: Stage, part: Part, shot: Shot, rest: float, before: Sequence[Shot] = ()
) -> tuple[float, float, float, float]:
    """Nan where there is nothing to tell."""
    thing, goal = part.thing, part.goal
    spot = None if thing is None else shot.bodies.get(thing.name, (*thing.at, 0.03))
    aim = None if goal is None else (*goal.at, goal.base + 0.03)
    there = math.nan
    if part.deed.kind == "watch":
        acting = float(shot.lamp is not None)
    elif part.deed.kind == "move":
        acting = math.nan if thing is None else float(shot.held == thing.name)
        if thing is not None:
            there = float(stage.sight(part, shot, rest, before=before).goal == thing_word(thing))
    else:
        acting = float(stage.sight(part, shot, rest).state == _ACTING[part.deed.kind])
    return _distance(shot, spot), _distance(shot, aim), acting, there


def _distance(shot: Shot, spot: tuple[float, float, float] | None) -> float:
    return math.nan if spot is None else min(math.dist(shot.gripper, spot) / _FAR, 1.0)


def table(stage: Stage, part: Part, shots: list[Shot], rest: float) -> NDArray[np.float32]:
    return np.array(
        [nearness(stage, part, shot, rest, shots[:at]) for at, shot in enumerate(shots)], np.float32
    ).reshape(-1, COLUMNS)


class Nearness(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.read = nn.Linear(hidden, COLUMNS)

    def loss(self, hidden: Tensor, wanted: Tensor) -> Tensor:
        """`hidden` of the frames' marks; `wanted` [frames, COLUMNS]."""
        found, known = self.read(hidden.float()), ~wanted.isnan()
        truth = wanted.nan_to_num()
        apart = F.smooth_l1_loss(found[:, :2], truth[:, :2], beta=0.1, reduction="none") * known[:, :2]
        state = F.binary_cross_entropy_with_logits(found[:, 2:], truth[:, 2:], reduction="none") * known[:, 2:]
        return (
            4 * apart.sum() / known[:, :2].sum().clamp(min=1) + (state.sum(0) / known[:, 2:].sum(0).clamp(min=1)).sum()
        )

    def take(self, states: dict[str, Tensor]) -> None:
        """What was saved, of as many columns as there were."""
        with torch.no_grad():
            for name, values in states.items():
                self.get_parameter(name)[: len(values)] = values
