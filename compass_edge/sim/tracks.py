"""Tracks: what is known of every frame of a performance, as JSON can hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.sim.acts import rests
from compass_edge.sim.packing import folded, packed
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot
from compass_edge.sim.things import BUTTON_DOWN, MOVABLE

if TYPE_CHECKING:
    from compass_edge.sim.performance import Performance


def tracks(performance: Performance, visible: Sequence[frozenset[str]]) -> dict[str, Any]:
    """`visible`: the names of the things that can be seen, frame by frame."""
    script, shots = performance.script, performance.shots
    begins = [0, *performance.ends[:-1]]
    underway, occurrence = [], []
    for frame in range(len(shots)):
        done = sum(end <= frame for end in performance.ends)
        step = script.steps[done] if done < len(script.steps) else None
        underway.append(bool(step is not None and step.act.underway(shots[begins[done] : frame + 1])))
        occurrence.append(occurrence_of(script, done) if step is not None else None)
    return {
        "path": [round(value, 4) for value in _path(shots, performance.ends).tolist()],
        "occurrence": occurrence,
        "underway": underway,
        "held": [shot.held for shot in shots],
        "satisfied": folded([tuple(satisfied(shot, script)) for shot in shots]),
        "visible": folded([tuple(sorted(names)) for names in visible]),
        "scene": {
            "things": [asdict(thing) for thing in script.things],
            "variant": script.variant,
            "state_hash": performance.state_hash(),
            "look": asdict(script.look),
        },
        "shots": packed(shots),
    }


def satisfied(shot: Shot, script: Script) -> list[str]:
    """The predicates that hold, in words."""
    found = [
        f"{thing.name} at {place.name}"
        for thing in script.things
        if thing.kind in MOVABLE
        for place in script.places
        if rests(shot, thing, place)
    ]
    found += [f"{name} down" for name, travel in shot.travel.items() if travel < BUTTON_DOWN]
    if shot.held:
        found.append(f"{shot.held} held")
    if shot.lamp:
        found.append(f"lamp {shot.lamp}")
    return found


def occurrence_of(script: Script, step: int) -> int:
    """r_t: how many of the steps so far ask for the same act, this one included."""
    return sum(one.act == script.steps[step].act for one in script.steps[: step + 1])


def _path(shots: Sequence[Shot], ends: Sequence[int]) -> NDArray[np.float64]:
    """How much of a step's way the gripper has gone; opening and closing count as way, waiting does not."""
    at = np.array([(*shot.gripper, shot.opening) for shot in shots])
    moved = np.sqrt(np.sum(np.diff(at, axis=0) ** 2, axis=1))
    gone = np.concatenate([[0.0], np.cumsum(np.where(moved < 5e-4, 0.0, moved))])  # less is a servo's trembling
    local = np.zeros(len(shots))
    for begin, end in zip([0, *ends], ends, strict=False):
        whole = gone[end] - gone[begin]
        if whole > 1e-3:
            local[begin:end] = (gone[begin:end] - gone[begin]) / whole
        else:  # nothing moves while something is watched
            local[begin:end] = np.arange(end - begin) / (end - begin)
    return local
