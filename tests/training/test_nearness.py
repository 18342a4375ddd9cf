"""How near the hand is to what a sentence names: nearest where the step shows itself, and never near to what it is not about."""

from __future__ import annotations

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

import torch
from performed import played

from training.judgement import rest_of
from training.memory import evidence
from training.nearness import COLUMNS, Nearness, table
from training.stage import Stage


@pytest.mark.parametrize("task", ["Q1", "Q4"])
def test_the_hand_is_near_what_is_pressed_and_far_from_the_rest(task: str) -> None:
    film = played(task)
    stage = Stage(film.script)
    part, end = stage.part(0), film.ends[0]
    rest = rest_of(part, film.shots, 0)
    shown = evidence(stage, part, film, 0, end, rest)
    near = table(stage, part, film.shots[: end + 1], rest)
    assert near.shape == (end + 1, COLUMNS)
    assert np.isnan(near[:, 1]).all(), "nothing is carried anywhere"
    assert int(near[:, 0].argmin()) in range(shown[0] - 2, shown[-1] + 3)
    assert [at for at in range(end) if near[at, 2]] == shown
    for other in stage.others(film.shots[0]):
        if other.thing != part.thing:
            apart = table(stage, other, film.shots[: end + 1], rest_of(other, film.shots, 0))
            assert apart[shown[0], 0] > 2 * near[shown[0], 0]


def test_a_thing_is_at_its_goal_when_its_step_is_done_and_not_before() -> None:
    film = played("S1")
    stage = Stage(film.script)
    part, end = stage.part(0), film.ends[0]
    there = table(stage, part, film.shots[: end + 1], rest_of(part, film.shots, 0))[:, 3]
    assert not there[: end // 2].any()
    assert there[end]


def test_columns_that_were_saved_are_taken_and_new_ones_begin() -> None:
    before, after = Nearness(4), Nearness(4)
    fresh = after.read.weight[3].clone()
    after.take({name: values[:3] for name, values in before.state_dict().items()})
    assert torch.equal(after.read.weight[:3], before.read.weight[:3])
    assert torch.equal(after.read.weight[3], fresh)


def test_what_is_not_known_is_not_learned() -> None:
    torch.manual_seed(0)
    layer = Nearness(4)
    wanted = torch.tensor([[0.5, float("nan"), 1.0, float("nan")], [0.2, float("nan"), 0.0, float("nan")]])
    layer.loss(torch.randn(2, 4), wanted).backward()
    grad = layer.read.weight.grad
    assert grad is not None
    assert float(grad[1].abs().sum()) == float(grad[3].abs().sum()) == 0
    assert float(grad[0].abs().sum()) > 0
