"""Context floors: by hand, against the plainest code that could compute them, and as the bound that they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from eval_film import episode
from hypothesis import given
from hypothesis import strategies as st

from compass_edge.data.episode import FORMS, Episode
from compass_edge.errors import UsageError
from compass_edge.eval.floor import GATE, Scene, floors, partition
from compass_edge.eval.theorem import check_floors

EPISODES = st.integers(1, 3)


@st.composite
def filmed(draw: st.DrawFn) -> tuple[list[Episode], list[list[Scene]]]:
    """A few episodes of two tasks, with scenes that often look alike."""
    episodes, scenes = [], []
    for number in range(draw(EPISODES)):
        size = draw(st.integers(0, 3))
        ends = sorted(draw(st.sets(st.integers(1, 12), min_size=size, max_size=size)))
        frames, task = draw(st.integers(1, 14)), draw(st.sampled_from("AB"))
        forms = [draw(st.sampled_from([(), ("state",), ("sequence",), ("recurrence", "state")])) for _ in ends]
        form = draw(st.sampled_from([None, *FORMS]))
        words = draw(st.sampled_from(["do it", "do it twice"]))
        episodes.append(episode(ends, frames, id=str(number), task=task, form=form, forms=forms, instruction=words))
        seen = st.tuples(
            st.sampled_from("xy"), st.lists(st.sampled_from([0.0, 0.01, 0.02, 5.0]), min_size=2, max_size=2)
        )
        scenes.append(draw(st.lists(seen, min_size=frames, max_size=frames)))
    return episodes, scenes


def plainly(episodes: Sequence[Episode], scenes: Sequence[Sequence[Scene]]) -> dict[str, dict[str, float]]:
    """Frame by frame: the first cell whose founder is near, then Definition 2 word for word."""
    cells: list[tuple[tuple[object, ...], list[float], list[tuple[str, float, int, str | None]]]] = []
    for one, seen in zip(episodes, scenes, strict=True):
        progress, active = one.progress(), one.active()
        for frame, (key, at) in enumerate(seen):
            name, where = (one.task, one.instruction, key), list(np.asarray(at))
            k = int(active[frame])
            form = one.truth[k - 1].forms[0] if k <= one.size and one.truth[k - 1].forms else one.form
            entry = (one.task, float(progress[frame]), k, form)
            for other, founder, entries in cells:
                if other == name and max(abs(a - b) for a, b in zip(founder, where, strict=True)) <= 0.012:
                    entries.append(entry)
                    break
            else:
                cells.append((name, where, [entry]))
    frames = {one.task: sum(other.frames for other in episodes if other.task == one.task) for one in episodes}
    found = {task: {**dict.fromkeys(FORMS, 0.0), "best": 0.0} for task in frames}
    for (task, *_), _, entries in cells:
        middle = median(p for _, p, _, _ in entries)
        m = sum(abs(p - middle) for _, p, _, _ in entries) / len(entries)
        for _, _, _, form in entries:
            found[str(task)]["best"] += m / frames[str(task)]
            if len({k for _, _, k, _ in entries}) > 1 and form is not None:
                found[str(task)][form] += m / frames[str(task)]
    return found


@given(filmed())
def test_floors_are_definition_2(told: tuple[list[Episode], list[list[Scene]]]) -> None:
    episodes, scenes = told
    measured, plain = floors(episodes, scenes), plainly(episodes, scenes)
    assert set(measured.tasks) == set(plain)
    for task, floor in measured.tasks.items():
        for form in FORMS:
            assert floor.deltas[form] == pytest.approx(plain[task][form], abs=1e-9)
        assert floor.best == pytest.approx(plain[task]["best"], abs=1e-9)
        assert floor.floor <= floor.best + 1e-9


@given(filmed(), st.randoms(use_true_random=False))
def test_no_estimate_from_the_frame_alone_is_better(
    told: tuple[list[Episode], list[list[Scene]]], dice: object
) -> None:
    """Whatever value each cell gets; and the medians come as near as the unlabelled cells allow."""
    episodes, scenes = told
    measured = floors(episodes, scenes)
    values: dict[int, float] = {}
    curves = [
        np.array([values.setdefault(int(cell), dice.uniform(0, 100)) for cell in cells])  # type: ignore[attr-defined]
        for cells in measured.cells
    ]
    assert all(check.holds for check in check_floors(measured, episodes, curves))
    for check in check_floors(measured, episodes, measured.best_frame_estimate):
        assert check.holds
        assert check.error == pytest.approx(measured.tasks[check.task].best)


def test_two_frames_that_look_alike_cost_half_their_gap() -> None:
    """Out, back, out, back: each place is seen in two steps, 50 apart."""
    one = episode([2, 4], 4, form="recurrence", forms=[("recurrence",), ("sequence",)])
    found = floors([one], [[("x", [0.0]), ("x", [1.0]), ("x", [0.0]), ("x", [1.0])]])
    floor = found.tasks["T"]
    assert floor.deltas == {"state": 0, "sequence": 12.5, "recurrence": 12.5}
    assert floor.floor == floor.best == 25
    assert floor.above_gate
    assert found.above_gate == ("T",)
    assert floor.dependent == 1
    assert found.best_frame_estimate[0].tolist() == [25, 50, 25, 50]


def test_frames_of_one_step_that_look_alike_are_not_context_dependent() -> None:
    one = episode([4, 8], 8, form="state")
    found = floors([one], [[("still", [0.0])] * 4 + [("other", [0.0])] * 4]).tasks["T"]
    assert found.floor == 0
    assert found.best > 0
    assert not found.above_gate


def test_the_gate_is_exceeded_not_met() -> None:
    """Of a hundred frames five pairs look alike: four are 80 apart, one 40."""
    long = episode([50, 100], 100, form="state")
    scenes: list[Scene] = [(frame, [0.0]) for frame in range(100)]
    for first, again in ((0, 80), (10, 90), (5, 85), (15, 95), (20, 60)):
        scenes[again] = scenes[first]
    below = floors([long], [scenes]).tasks["T"]
    assert below.floor == pytest.approx(4 * 0.8 + 0.4)
    assert below.dependent == pytest.approx(0.1)
    assert not below.above_gate
    assert not replace(below, deltas={"state": GATE}).above_gate
    assert replace(below, deltas={"state": GATE, "sequence": 0.001}).above_gate


def test_episodes_of_a_task_are_pooled_and_instructions_kept_apart() -> None:
    """In one the place is seen first, in the other last."""
    first, last = episode([2, 4], 4, id="a", form="state"), episode([2, 4], 4, id="b", form="state")
    scenes: list[list[Scene]] = [
        [("x", [0.0]), (1, [0.0]), (2, [0.0]), (3, [0.0])],
        [(4, [0.0]), (5, [0.0]), (6, [0.0]), ("x", [0.0])],
    ]
    apart = floors([first, last], scenes)
    assert apart.tasks["T"].floor == 0, "their instructions differ"
    same = [episode([2, 4], 4, id=id, form="state", instruction="do it") for id in "ab"]
    assert floors(same, scenes).tasks["T"].floor == pytest.approx(75 / 2 * 2 / 8)


def test_tolerance_is_in_every_coordinate_and_from_the_founder() -> None:
    rows = [[0, 0], [0.01, 0], [0.012, -0.012], [0.02, 0], [0, 0.013], [0.031, 0.001]]
    assert partition(rows, 0.012).tolist() == [0, 0, 0, 1, 2, 1]
    assert partition([[np.nan], [0.0], [np.nan]], 1).tolist() == [0, 1, 2]
    assert partition(np.zeros((0, 3)), 1).tolist() == []


def test_scenes_must_fit_their_episodes() -> None:
    one = episode([2, 4], 4)
    with pytest.raises(UsageError, match="for each of its 4 frames, and 3 came"):
        floors([one], [[("x", [0.0])] * 3])
    with pytest.raises(UsageError, match="for each of 1 episodes, and 0 came"):
        floors([one], [])
    with pytest.raises(UsageError, match=r"as many coordinates as each other.*\[1, 2\]"):
        floors([one], [[("x", [0.0])] * 3 + [("x", [0.0, 1.0])]])


def test_a_task_of_five_episodes_takes_moments() -> None:
    dice = np.random.default_rng(0)
    episodes = [episode([100, 200, 300, 400], 500, id=str(n), instruction="do it") for n in range(5)]
    scenes: list[list[Scene]] = [[("x", row) for row in dice.random((500, 40))] for _ in range(5)]
    since = time.perf_counter()
    found = floors(episodes, scenes)
    assert found.tasks["T"].cells == 2500, "all different: the slowest case"
    assert time.perf_counter() - since < 3
