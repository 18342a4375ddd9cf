"""Packing: shots and rows of words as JSON holds them, small and exact, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compass_edge.sim.shot import Shot, rounded
from compass_edge.sim.things import Thing

_UNIT = 1e-4  # metres: what lengths are counted in


def folded(rows: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    table = list(dict.fromkeys(rows))
    number = {row: index for index, row in enumerate(table)}
    return {"table": [list(row) for row in table], "at": [number[row] for row in rows]}


def unfolded(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    table = [tuple(row) for row in values["table"]]
    return [table[index] for index in values["at"]]


def packed(shots: Sequence[Shot]) -> dict[str, Any]:
    first = shots[0]
    return {
        "unit": _UNIT,
        "gripper": [_counts(shot.gripper) for shot in shots],
        "opening": [round(shot.opening / _UNIT) for shot in shots],
        "held": [shot.held for shot in shots],
        "bodies": {name: [_counts(shot.bodies[name]) for shot in shots] for name in first.bodies},
        "touched": folded([tuple(sorted(shot.touched)) for shot in shots]),
        "travel": {name: [round(shot.travel[name] / _UNIT) for shot in shots] for name in first.travel},
        "lamp": [shot.lamp for shot in shots],
    }


def shots_of(values: Mapping[str, Any]) -> list[Shot]:
    bodies: dict[str, Any] = values["bodies"]
    travel: dict[str, Any] = values["travel"]
    touched = unfolded(values["touched"])
    return [
        Shot(
            gripper=_metres(values["gripper"][frame]),
            opening=rounded(values["opening"][frame] * _UNIT),
            held=values["held"][frame],
            bodies={name: _metres(points[frame]) for name, points in bodies.items()},
            touched=frozenset(touched[frame]),
            travel={name: rounded(way[frame] * _UNIT) for name, way in travel.items()},
            lamp=values["lamp"][frame],
        )
        for frame in range(len(values["gripper"]))
    ]


def things_of(scene: Mapping[str, Any]) -> list[Thing]:
    return [
        Thing(**{**values, "at": tuple(values["at"]), "drawn_at": tuple(values["drawn_at"])})
        for values in scene["things"]
    ]


def _counts(point: Sequence[float]) -> list[int]:
    return [round(value / _UNIT) for value in point]


def _metres(counts: Sequence[int]) -> tuple[float, float, float]:
    x, y, z = counts
    return (rounded(x * _UNIT), rounded(y * _UNIT), rounded(z * _UNIT))
