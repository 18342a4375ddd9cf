"""Which cells a sentence is about: by the numbers of its things in the map of a frame."""

from __future__ import annotations

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

import torch
from performed import played

from training.films import Films
from training.footage import CELL, NOTHING, SIDE
from training.model import CELLS, VISUAL
from training.pointing import NOWHERE, Pointing, pointed
from training.stage import Stage, thing_word
from training.verifier_samples import verify


@pytest.mark.parametrize("task", ["S1", "S7", "Q1", "Q4", "Q6", "R3"])
def test_a_sentence_points_at_what_it_names(task: str) -> None:
    film = played(task)
    stage, things = Stage(film.script), film.script.things
    for step in range(len(film.ends)):
        part = stage.part(step)
        subject, _, goal = pointed(stage, part)
        assert things[subject] == part.thing
        if part.goal is not None and goal != NOWHERE:
            assert things[goal].at == part.goal.at or part.goal.name == f"the {thing_word(things[goal])}"


def test_samples_know_what_they_are_about() -> None:
    films = Films([played("Q1")])
    dice = np.random.default_rng(0)
    assert all(verify(films, dice, text=True).pointed[0] >= 0 for _ in range(20))


def test_it_learns_a_cell_and_nothing_of_what_is_not_asked() -> None:
    torch.manual_seed(0)
    layer, side = Pointing(8), SIDE // CELL
    maps = np.full((2, side, side), NOTHING, np.uint8)
    maps[:, : side // CELLS, : side // CELLS] = 3  # the first cell of both
    seen = torch.randn(2, VISUAL, 8)
    seen[:, 0] = torch.tensor([4.0, -4.0] * 4)
    numbers = [(3, NOWHERE, NOWHERE)] * 2
    optimizer = torch.optim.Adam(layer.parameters(), 0.05)
    losses = []
    for _ in range(150):
        loss = layer.loss(seen.view(-1, 8), maps, numbers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert float(layer.cells.weight.grad[1:].abs().sum()) == 0
