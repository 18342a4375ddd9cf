"""The ways of asking: each fits its table, and none is one of the benchmark's negatives."""

from __future__ import annotations

import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

import numpy as np

from compass_edge.sim.catalogue import TASKS, write
from compass_edge.sim.negatives import NEGATIVES
from compass_edge.sim.subtasks import deed_of, hunted, outcomes_of
from training.stage import Stage
from training.wording import unrelated, wordings


@pytest.mark.parametrize("task", TASKS)
def test_a_wording_asks_for_steps_that_the_script_has(task: str) -> None:
    dice = np.random.default_rng(0)
    script = write(task, 10_000)
    found = [wordings(script, dice) for _ in range(200)]
    assert all(picks and max(picks) < len(script.steps) for picks in (one.picks for one in found))
    assert len({one.text for one in found}) >= 3, "there are several ways to ask"
    assert any(one.text == script.instruction for one in found)
    assert not any("{" in one.text for one in found)


def test_a_text_asks_for_one_thing_only() -> None:
    """The same words on the same table never have two plans."""
    dice = np.random.default_rng(1)
    for task in TASKS:
        script = write(task, 10_001)
        plan = hunted(task, [deed_of(step.sentence, step.facts) for step in script.steps], script.instruction)
        plans: dict[str, list[str]] = {}
        for _ in range(300):
            one = wordings(script, dice)
            if task == "S5":
                continue
            outcomes = outcomes_of([plan[at] for at in one.picks])
            assert plans.setdefault(one.text, outcomes) == outcomes, one.text


def test_a_cover_is_planned_after_what_it_hides_and_told_without_it() -> None:
    stage = Stage(write("S3", 10_000))
    hidden = {
        step.facts["hidden"]: deed.what
        for step, deed in zip(stage.script.steps, stage.deeds, strict=True)
        if "hidden" in step.facts
    }
    lifts = [deed for deed in stage.plan if deed.kind == "lift"]
    assert [deed.what for deed in lifts] == [
        f"the cover that hides the {paint} block, {what}," for paint, what in hidden.items()
    ]
    assert [stage.part(at).deed.what for at in (3, 4, 5)] == list(hidden.values())


def test_what_is_unrelated_has_none_of_the_negatives_nouns() -> None:
    dice = np.random.default_rng(2)
    texts = " ".join(unrelated(dice).lower() for _ in range(4000))
    for negative in NEGATIVES.values():
        if negative.kind == "mismatch":
            assert negative.instruction("").lower() not in texts
    for noun in ("towel", "drawer", "cup", "microwave", "mug", "whiteboard", "charger"):
        assert noun not in texts
