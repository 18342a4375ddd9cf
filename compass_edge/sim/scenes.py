"""Scenes: what each frame of an episode shows, as far as it carries progress. The floors of the evaluation are made of them.

Colours, textures, light, the camera and where chance has put things carry none: a thing is what it is to its task (its role), and
coordinates are moved back to where the task's drawing has the things. What cannot be seen is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.episode import Episode
from compass_edge.eval.floor import Floors, Scene, floors
from compass_edge.sim.packing import shots_of, things_of, unfolded
from compass_edge.sim.shot import Shot
from compass_edge.sim.things import MOVABLE, Thing


def context_floors(episodes: Sequence[Episode]) -> Floors:
    """Per task, over all its episodes that ask for the same thing, whatever its colours."""
    alike = [replace(episode, instruction=episode.tracks["scene"]["variant"]) for episode in episodes]
    return floors(alike, [scenes(episode) for episode in episodes])


def scenes(episode: Episode) -> list[Scene]:
    things = things_of(episode.tracks["scene"])
    shots = shots_of(episode.tracks["shots"])[: episode.frames]
    visible = unfolded(episode.tracks["visible"])
    drawing = _Drawing([thing for thing in things if thing.kind != "toy"])
    return [_scene(shot, set(seen), things, drawing) for shot, seen in zip(shots, visible, strict=False)]


class _Drawing:
    """Moves a point as the things near it were moved, back to the drawing."""

    def __init__(self, things: Sequence[Thing]) -> None:
        self._at = np.array([thing.at for thing in things])
        self._back = np.array([thing.drawn_at for thing in things]) - self._at
        # Which button is where can be seen: another arrangement is another scene.
        still = sorted((thing.role, thing.drawn_at) for thing in things if thing.kind not in MOVABLE)
        self.fixed = np.array([value for _, at in still for value in at])

    def point(self, at: Sequence[float]) -> NDArray[np.float64]:
        away = np.maximum(np.sum((self._at - at[:2]) ** 2, axis=1), 1e-8)
        weight = 1 / away**2  # the nearest thing counts for almost all
        return np.array([*(np.array(at[:2]) + weight @ self._back / weight.sum()), at[2]])


def _scene(shot: Shot, visible: set[str], things: Sequence[Thing], drawing: _Drawing) -> Scene:
    shown = [thing for thing in things if thing.kind in MOVABLE and thing.name in visible]
    # Things of one role look alike: which is which is told by nothing but where they are.
    placed = sorted((thing.role, *_order(drawing.point(shot.bodies[thing.name])), thing.name) for thing in shown)
    key = (tuple(role for role, *_ in placed), shot.lamp is not None)
    bodies = [drawing.point(shot.bodies[name]) for *_, name in placed]
    caps = [shot.travel[thing.name] for thing in sorted(things, key=lambda thing: thing.role) if thing.kind == "button"]
    return key, np.concatenate([drawing.point(shot.gripper), [shot.opening], *bodies, caps, drawing.fixed])


def _order(point: NDArray[np.float64]) -> tuple[float, float]:
    """From left to right, then from the back, in centimetres: a trembling hand changes nothing."""
    return (round(float(point[1]), 2), round(float(point[0]), 2))
