"""Pointing: the decoder learns early which cells of a picture a sentence is about. Only while it is trained: the layer is thrown away.

Who is told "press the green button" has to find it before anything else. Left to the words of replies, a decoder learns names of things
and places in hours; the simulator's maps tell every cell at once.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from training.footage import CELL, SIDE
from training.model import CELLS, VISUAL
from training.stage import Part, Stage, thing_word

NOWHERE = -1
Pointed = tuple[int, int, int]  # numbers of things in a map: what the step is about, where it comes from, where it goes
NOTHING: Pointed = (NOWHERE, NOWHERE, NOWHERE)
_SPAN = SIDE // CELL // CELLS  # of a map, in a token
_SEEN = 0.04  # of a token that a thing must fill
_RARE = 5.0


def pointed(stage: Stage, part: Part) -> Pointed:
    names = [thing.name for thing in stage.script.things]
    subject = names.index(part.thing.name) if part.thing is not None else NOWHERE
    origin, goal = (
        next(
            (
                at
                for at, thing in enumerate(stage.script.things)
                if place is not None
                and (
                    (thing.kind in ("mat", "box") and thing.at == place.at) or place.name == f"the {thing_word(thing)}"
                )
            ),
            NOWHERE,
        )
        for place in (part.origin, part.goal)
    )
    return subject, origin, goal


def shown(maps: NDArray[np.uint8], numbers: list[Pointed]) -> NDArray[np.bool_]:
    """[frames, VISUAL, 3]: the cells in which each of the three is seen. `maps` [frames, cells, cells]."""
    cells = maps.reshape(len(maps), CELLS, _SPAN, CELLS, _SPAN)[..., None]
    found: NDArray[np.bool_] = (cells == np.array(numbers)[:, None, None, None, None, :]).mean(axis=(2, 4)) > _SEEN
    return found.reshape(len(maps), VISUAL, 3)


class Pointing(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm, self.cells = nn.LayerNorm(hidden), nn.Linear(hidden, 3)

    def loss(self, seen: Tensor, maps: NDArray[np.uint8], numbers: list[Pointed]) -> Tensor:
        """`seen` [frames * VISUAL, hidden]; `maps` [frames, cells, cells]; `numbers` of each frame."""
        wanted = np.array(numbers)
        truth = torch.from_numpy(shown(maps, numbers)).float()
        known = torch.from_numpy(wanted != NOWHERE).float()[:, None].expand_as(truth)
        found = self.cells(self.norm(seen.float())).view_as(truth)
        loss = F.binary_cross_entropy_with_logits(
            found, truth, weight=known, pos_weight=torch.tensor(_RARE), reduction="sum"
        )
        return loss / known.sum().clamp(min=1)
