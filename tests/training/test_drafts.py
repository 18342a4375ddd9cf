"""A draft is the table that a film of the same script begins with."""

from __future__ import annotations

import json

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from performed import played

from training.drafts import draft_of, drafts
from training.orienter_samples import first_look
from training.stage import Stage, objects


@pytest.mark.parametrize("task", ["S3", "S7", "Q2", "Q6", "R2", "R8"])
def test_it_shows_what_a_film_begins_with(task: str) -> None:
    film = played(task)
    draft = draft_of(film.script)
    assert objects(Stage(draft.script), draft.shots[0]) == objects(Stage(film.script), film.shots[0])


def test_plans_name_only_what_is_on_their_table() -> None:
    dice = np.random.default_rng(3)
    films = drafts(dice, 60)
    asked = [first_look(films, dice, text=True) for _ in range(200)]
    planned = [json.loads(sample.reply) for sample in asked if sample.case != "lost"]
    assert len(planned) > 100
    for reply in planned:
        there = " ".join(entry["name"] for entry in reply["objects"])
        for step in reply["plan"]:
            for colour in ("red", "green", "blue", "yellow", "purple", "orange"):
                assert colour not in step["outcome"] or colour in there


def test_no_two_batches_have_the_same_tables() -> None:
    dice = np.random.default_rng(0)
    first, second = ({film.key for film in drafts(dice, 20).films} for _ in range(2))
    assert not first & second
