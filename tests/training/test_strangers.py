"""Strangers: other places, of which the Orienter has to say that nothing it is asked for is there."""

from __future__ import annotations

import json

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from compass_edge.roles.orienter import read_first
from compass_edge.sim.gl import choose_gl
from training.films import Films
from training.footage import SIDE, Footage
from training.orienter_samples import first_look, look
from training.strangers import strangers


@pytest.fixture(scope="module")
def some() -> list[Footage]:
    choose_gl()
    return [one for seed in range(500_000, 500_003) for one in strangers("R1", seed)]


def test_every_view_is_another(some: list[Footage]) -> None:
    pictures = [one.pictures[0] for one in some]
    assert {picture.shape for picture in pictures} == {(SIDE, SIDE, 3)}
    apart = [np.abs(a.astype(int) - b).mean() for at, a in enumerate(pictures) for b in pictures[:at]]
    assert min(apart) > 1
    assert all(picture.std() > 5 for picture in pictures), "something is seen"


def test_the_same_seed_draws_the_same(some: list[Footage]) -> None:
    assert (strangers("R1", 500_000)[0].pictures == some[0].pictures).all()


def test_nothing_that_is_asked_for_is_there(some: list[Footage]) -> None:
    films, dice = Films(some), np.random.default_rng(0)
    instructions = set()
    for _ in range(30):
        sample = first_look(films, dice, text=False)
        assert (json.loads(sample.reply)["objects"], sample.about[1], sample.case) == ([], [], "lost")
        found = read_first(sample.reply, tau='"tau"' in sample.reply, max_steps=32)
        assert not found.grounded
        instructions.add("Press" in str(sample.question))
    assert look(films, dice, text=False).reply.startswith('{"objects": []')
    assert instructions == {True, False}, "known and unknown things are asked for"
