"""Scenes: what a frame shows, in terms of the task."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from compass_edge.data.episode import Episode, StepTruth
from compass_edge.sim.scenes import context_floors, scenes
from compass_edge.sim.things import Thing


class Film:
    key, frames = "film", 40


RED = Thing("red_block_1", "block", "red", "block", (0.0, 0.1), (0.0, 0.1))
BLUE = Thing("blue_block_2", "block", "blue", "block", (0.0, -0.1), (0.0, -0.1))
LAMP = Thing("black_lamp_1", "lamp", "black", "lamp", (0.2, 0.0), (0.2, 0.0))


def episode(
    gripper: list[float], things: tuple[Thing, ...] = (RED, BLUE, LAMP), *, visible: list[list[str]] | None = None,
    lamp: str | None = None, variant: str = "", moved: float = 0.0,
) -> Episode:  # fmt: skip
    """The gripper's y, frame by frame, with both blocks where they are; two steps of half the frames."""
    frames = len(gripper)
    seen = visible or [[thing.name for thing in things]] * frames
    shots: dict[str, Any] = {
        "gripper": [[0, round((y + moved) * 1e4), 2000] for y in gripper],
        "opening": [400] * frames,
        "held": [None] * frames,
        "bodies": {thing.name: [[round(value * 1e4) for value in (*thing.at, 0.025)]] * frames
                   for thing in things if thing.kind == "block"},
        "touched": {"table": [[]], "at": [0] * frames},
        "travel": {},
        "lamp": [lamp] * frames,
    }  # fmt: skip
    tracks = {
        "scene": {"things": [asdict(thing) for thing in things], "variant": variant},
        "shots": shots,
        "visible": {"table": seen, "at": list(range(frames))},
    }
    half = frames // 2
    steps = (StepTruth("one", half, ("recurrence",)), StepTruth("two", frames, ("recurrence",)))
    return Episode("R0/0", "R0", "Press.", Film(), frames, 10.0, steps, "recurrence", tracks=tracks)  # type: ignore[arg-type]


WAY = [0.02 * frame for frame in range(10)]


def test_a_motion_that_repeats_has_a_floor() -> None:
    floor = context_floors([episode(WAY + WAY)]).tasks["R0"]
    assert floor.floor == pytest.approx(25.0)  # each scene at p and p + 50
    assert floor.deltas["recurrence"] == pytest.approx(25.0)
    assert context_floors([episode([0.02 * frame for frame in range(20)])]).tasks["R0"].floor == 0.0


def test_colours_and_shifts_carry_no_progress() -> None:
    shifted = tuple(Thing(**{**asdict(thing), "at": (thing.at[0], thing.at[1] + 0.03)}) for thing in (RED, BLUE, LAMP))
    there, moved = scenes(episode(WAY)), scenes(episode(WAY, shifted, moved=0.03))
    for (one_key, one), (other_key, other) in zip(there, moved, strict=True):
        assert one_key == other_key
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_seeds_are_pooled_unless_they_ask_for_something_else() -> None:
    there, back = episode(WAY), episode(WAY[::-1])  # the same scenes at opposite progress
    assert context_floors([there]).tasks["R0"].floor == 0.0
    assert context_floors([there, back]).tasks["R0"].floor > 20
    other = episode(WAY[::-1], variant="twice as often")
    assert context_floors([there, other]).tasks["R0"].floor == 0.0


def test_what_cannot_be_seen_is_not_there() -> None:
    hidden = [[RED.name, LAMP.name]] * 10
    (all_key, whole), (key, rest) = scenes(episode(WAY))[0], scenes(episode(WAY, visible=hidden))[0]
    assert all_key != key
    assert np.size(rest) == np.size(whole) - 3


def test_a_lamp_that_shines_is_another_scene() -> None:
    assert scenes(episode(WAY))[0][0] != scenes(episode(WAY, lamp="red"))[0][0]
    assert scenes(episode(WAY, lamp="green"))[0][0] == scenes(episode(WAY, lamp="red"))[0][0]


def test_which_button_is_where_can_be_seen() -> None:
    left = Thing("red_button_1", "button", "red", "button 0", (0.0, -0.2), (0.0, -0.2))
    right = Thing("blue_button_2", "button", "blue", "button 1", (0.0, 0.2), (0.0, 0.2))
    swapped = (Thing(**{**asdict(left), "role": "button 1"}), Thing(**{**asdict(right), "role": "button 0"}))
    one = episode(WAY, (RED, left, right))
    other = episode(WAY[::-1], (RED, *swapped))
    for each in (one, other):
        each.tracks["shots"]["travel"] = {"red_button_1": [0] * 10, "blue_button_2": [0] * 10}
    assert context_floors([one, other]).tasks["R0"].floor == 0.0
