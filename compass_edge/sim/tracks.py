"""Tracks: what is known of every frame of a performance, as JSON can hold it, and shots read back from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.sim.acts import rests
from compass_edge.sim.performance import Performance
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot, rounded
from compass_edge.sim.things import BUTTON_DOWN, MOVABLE, Thing

_UNIT = 1e-4  # metres: what lengths are counted in


def tracks(performance: Performance, visible: Sequence[frozenset[str]]) -> dict[str, Any]:
    """`visible`: the names of the things that can be seen, frame by frame."""
    script, shots = performance.script, performance.shots
    begins = [0, *performance.ends[:-1]]
    underway, occurrence = [], []
    for frame in range(len(shots)):
        done = sum(end <= frame for end in performance.ends)
        step = script.steps[done] if done < len(script.steps) else None
        underway.append(bool(step is not None and step.act.underway(shots[begins[done] : frame + 1])))
        occurrence.append(step.facts.get("occurrence") if step is not None else None)
    return {
        "path": [round(value, 4) for value in _path(shots, performance.ends).tolist()],
        "occurrence": occurrence,
        "underway": underway,
        "held": [shot.held for shot in shots],
        "satisfied": _folded([tuple(satisfied(shot, script)) for shot in shots]),
        "visible": _folded([tuple(sorted(names)) for names in visible]),
        "scene": {
            "things": [asdict(thing) for thing in script.things],
            "variant": script.variant,
            "state_hash": performance.state_hash(),
            "look": asdict(script.look),
        },
        "shots": _packed(shots),
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


def unfolded(folded: Mapping[str, Any]) -> list[tuple[str, ...]]:
    table = [tuple(row) for row in folded["table"]]
    return [table[index] for index in folded["at"]]


def shots_of(packed: Mapping[str, Any]) -> list[Shot]:
    bodies: dict[str, Any] = packed["bodies"]
    travel: dict[str, Any] = packed["travel"]
    touched = unfolded(packed["touched"])
    return [
        Shot(
            gripper=_metres(packed["gripper"][frame]),
            opening=rounded(packed["opening"][frame] * _UNIT),
            held=packed["held"][frame],
            bodies={name: _metres(points[frame]) for name, points in bodies.items()},
            touched=frozenset(touched[frame]),
            travel={name: rounded(values[frame] * _UNIT) for name, values in travel.items()},
            lamp=packed["lamp"][frame],
        )
        for frame in range(len(packed["gripper"]))
    ]


def things_of(scene: Mapping[str, Any]) -> list[Thing]:
    return [
        Thing(**{**values, "at": tuple(values["at"]), "drawn_at": tuple(values["drawn_at"])})
        for values in scene["things"]
    ]


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


def _folded(rows: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    table = list(dict.fromkeys(rows))
    number = {row: index for index, row in enumerate(table)}
    return {"table": [list(row) for row in table], "at": [number[row] for row in rows]}


def _packed(shots: Sequence[Shot]) -> dict[str, Any]:
    first = shots[0]
    return {
        "unit": _UNIT,
        "gripper": [_counts(shot.gripper) for shot in shots],
        "opening": [round(shot.opening / _UNIT) for shot in shots],
        "held": [shot.held for shot in shots],
        "bodies": {name: [_counts(shot.bodies[name]) for shot in shots] for name in first.bodies},
        "touched": _folded([tuple(sorted(shot.touched)) for shot in shots]),
        "travel": {name: [round(shot.travel[name] / _UNIT) for shot in shots] for name in first.travel},
        "lamp": [shot.lamp for shot in shots],
    }


def _counts(point: Sequence[float]) -> list[int]:
    return [round(value / _UNIT) for value in point]


def _metres(counts: Sequence[int]) -> tuple[float, float, float]:
    x, y, z = counts
    return (rounded(x * _UNIT), rounded(y * _UNIT), rounded(z * _UNIT))
