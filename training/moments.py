"""Moments: the pictures of a film just before and after something changes. The others are soon known."""

from __future__ import annotations

from collections.abc import Sequence

from compass_edge.sim.shot import Shot
from compass_edge.sim.things import BUTTON_DOWN
from training.footage import Footage

MOMENTS = 0.5  # of frames that a tower learns from, where they are of films
_FOUND: dict[int, list[int]] = {}  # by their lists of frames, which all paintings of a film share and keep alive


def moments_of(film: Footage) -> list[int]:
    """Places of the pictures beside which a grip, a touch, a press or a light begins or ends."""
    if id(film.frames) not in _FOUND:
        _FOUND[id(film.frames)] = beside_changes([film.shots[frame] for frame in film.frames])
    return _FOUND[id(film.frames)]


def beside_changes(shots: Sequence[Shot]) -> list[int]:
    """Places of the shots beside which something of that kind begins or ends."""
    states = [(shot.held, shot.touched, shot.is_open, _pressed(shot), shot.lamp) for shot in shots]
    changed = {at for at in range(1, len(states)) if states[at] != states[at - 1]}
    return sorted(changed | {at - 1 for at in changed})


def _pressed(shot: Shot) -> frozenset[str]:
    return frozenset(name for name, travel in shot.travel.items() if travel < BUTTON_DOWN)
