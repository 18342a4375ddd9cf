"""The catalogue: 24 tasks in three forms, seeds that are for one thing only, scripts that hold together."""

from __future__ import annotations

from itertools import pairwise

import pytest

from compass_edge.data.episode import FORMS
from compass_edge.errors import UsageError
from compass_edge.sim.acts import Carry, Lift
from compass_edge.sim.catalogue import (
    NEGATIVE_SEEDS,
    TASKS,
    TEST_SEEDS,
    TRAIN_SEEDS,
    TUNING_SEEDS,
    split,
    write,
)
from compass_edge.sim.dice import Dice
from compass_edge.sim.things import MOVABLE
from compass_edge.sim.tracks import occurrence_of

SEEDS = (*TEST_SEEDS, 100, 1000, 10_000, 10_001)


def test_there_are_eight_tasks_of_each_form() -> None:
    assert len(TASKS) == 24
    assert [sum(task.form == form for task in TASKS.values()) for form in FORMS] == [8, 8, 8]
    assert all(task.title for task in TASKS.values())


def test_no_seed_is_for_two_things() -> None:
    purposes = (TEST_SEEDS, NEGATIVE_SEEDS, TUNING_SEEDS, TRAIN_SEEDS)
    for earlier, later in pairwise(purposes):
        assert earlier.stop <= later.start
    assert [split(seed) for seed in (0, 4, 100, 1000, 9999, 10_000)] == [
        "test", "test", "negatives", "tuning", "tuning", "train",
    ]  # fmt: skip
    for unused in (-1, 5, 99):
        with pytest.raises(UsageError, match="A seed must be"):
            split(unused)


def test_dice_never_change() -> None:
    dice = Dice("R1", 0, "layout")
    assert [dice.whole(1, 6) for _ in range(8)] == [6, 6, 4, 3, 3, 6, 1, 4]
    assert round(Dice("a", 1).uniform(0, 1), 12) == 0.775154353399
    assert Dice("a", 1).choice("abcdef") == "e"
    assert Dice("b", 1).shuffled("abcdef") == ["c", "a", "e", "f", "d", "b"]


@pytest.mark.parametrize("task", TASKS)
def test_scripts_hold_together(task: str) -> None:
    for seed in SEEDS:
        script = write(task, seed)
        assert write(task, seed) == script
        names = [thing.name for thing in script.things]
        assert len(set(names)) == len(names)
        assert len(script.steps) >= 3
        for step in script.steps:
            assert step.sentence.endswith(".")
            assert all((step.before, step.tau, step.after, step.forms))
            assert script.form in {form for one in script.steps for form in one.forms}
        things = {thing.name: thing for thing in script.things}
        at = {name: thing.at for name, thing in things.items()}
        for step in script.steps:  # every carry begins where the thing is, and ends elsewhere
            if isinstance(step.act, Carry):
                place, thing = step.act.place, step.act.thing
                assert thing.kind in MOVABLE
                assert at[thing.name] != place.at
                at[thing.name] = place.at
            elif isinstance(step.act, Lift):
                away = [abs(a - b) for a, b in zip(at[step.act.thing.name], step.act.place.at, strict=True)]
                assert max(away) < 0.01


@pytest.mark.parametrize("task", TASKS)
def test_seeds_differ(task: str) -> None:
    scripts = [write(task, seed) for seed in SEEDS]
    assert len({tuple(thing.at for thing in script.things) for script in scripts}) == len(SEEDS)
    assert len({script.look for script in scripts}) == len(SEEDS)
    assert len({tuple(thing.colour for thing in script.things) for script in scripts}) > 1


def test_things_do_not_stand_in_each_other() -> None:
    for task in TASKS:
        for seed in SEEDS:
            still = [thing for thing in write(task, seed).things if thing.kind in ("mat", "button", "box", "lamp")]
            for index, one in enumerate(still):
                for other in still[index + 1 :]:
                    apart = max(abs(one.at[0] - other.at[0]), abs(one.at[1] - other.at[1]))
                    assert apart > 0.09, (task, seed, one.name, other.name)


def test_occurrences_are_counted_by_what_is_asked_for() -> None:
    counted = {
        task: [occurrence_of(write(task, 0), step) for step in range(len(write(task, 0).steps))] for task in TASKS
    }
    assert counted["R1"] == [1, 2, 3, 4, 5]
    assert counted["R2"] == [1, 2, 3, 1, 2, 3, 4, 1]
    assert counted["R3"] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert counted["Q1"] == [1, 1, 1, 2, 2, 2]
    assert counted["R8"] == [1, 2, 3, 4, 1]
    for task in TASKS:  # where a step says which occurrence it is, it says the same
        told = [step.facts.get("occurrence") for step in write(task, 0).steps]
        assert all(one in (None, other) for one, other in zip(told, counted[task], strict=True)), task


def test_only_those_who_learn_miss() -> None:
    assert write("R4", 10_000).manner.miss > 0
    assert write("R4", 0).manner.miss == write("R4", 1000).manner.miss == 0


def test_an_unknown_task_is_told() -> None:
    with pytest.raises(UsageError, match="There is no task 'Z1'"):
        write("Z1", 0)
