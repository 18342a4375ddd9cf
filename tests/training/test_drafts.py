"""A draft is the table that a film of the same script begins with."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from performed import played

from training.drafts import DRAFTED, draft_of, drafts
from training.films import Films
from training.orienter_samples import first_look, next_step
from training.stage import Stage, objects


@pytest.mark.parametrize("task", ["S3", "S7", "Q2", "Q6", "R2", "R8"])
def test_it_shows_what_a_film_begins_with(task: str) -> None:
    film = played(task)
    draft = draft_of(film.script)
    assert objects(Stage(draft.script), draft.shots[0]) == objects(Stage(film.script), film.shots[0])


def test_plans_name_only_what_is_on_their_table() -> None:
    dice = np.random.default_rng(3)
    films = drafts(dice, 60, DRAFTED["first"])
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
    first, second = ({film.key for film in drafts(dice, 20, DRAFTED["first"]).films} for _ in range(2))
    assert not first & second


def test_what_to_do_next_is_in_the_memory() -> None:
    """Of S8 the cover that was seen to hide the block; of S7 the box that was used, or the one that was not."""
    dice = np.random.default_rng(5)
    films = drafts(dice, 80, DRAFTED["next"])
    found = 0
    for sample in (next_step(films, dice, text=True) for _ in range(300)):
        text, said = str(sample.question.parts[0]), json.loads(sample.reply)["subtask"].removesuffix(".")  # type: ignore[union-attr]
        memory = re.findall(r'^- when step \d+ was completed: "(.*)"$', text, re.MULTILINE)
        if sample.case == "S8" and (wanted := re.search(r"that hides the (\w+ block)", text)) and "in front of" in said:
            hiding = [line.split(":")[0] for line in memory if line.endswith(f", {wanted[1]} under it")]
            assert set(hiding) == {said.split("in front of the ")[1]}
            found += 1
        elif sample.case == "S7" and (box := re.search(r"into the ((?:left|right) gray box)", said)):
            used = [re.findall(r"(\w+ gray box): \w+ block", line) for line in memory]
            assert ([box[1]] in used) == (len(memory) == 2)
            found += 1
    assert found > 30


def test_a_picture_does_not_tell_what_to_do_next() -> None:
    """One film of S8 hides its blocks in one way; asked about it, the cover is every one of the three."""
    dice, films = np.random.default_rng(2), Films([played("S8"), played("S7")])
    asked = [next_step(films, dice, text=False) for _ in range(250)]
    assert all(len(sample.frames) == 1 for sample in asked)
    own = [sample for sample in asked if sample.case in ("S7", "S8")]
    assert all(films.films[sample.frames[0][0]].script.task == sample.case for sample in own)
    said = [json.loads(sample.reply)["subtask"] for sample in own if sample.case == "S8"]
    covers = {found[1] for text in said if (found := re.search(r"in front of the (\w+) (\w+ )?cover", text))}
    assert covers == {"leftmost", "middle", "rightmost"}
