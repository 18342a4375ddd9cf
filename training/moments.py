"""Moments: the pictures of a film just before and after something changes. The others are soon known."""

from __future__ import annotations

from compass_edge.sim.things import BUTTON_DOWN
from training.footage import Footage

MOMENTS = 0.5  # of frames that a tower learns from, where they are of films
_FOUND: dict[int, list[int]] = {}  # by their lists of frames, which all paintings of a film share and keep alive


def moments_of(film: Footage) -> list[int]:
    """Places of the pictures beside which a grip, a touch, a press or a light begins or ends."""
    if id(film.frames) not in _FOUND:
        states = []
        for frame in film.frames:
            shot = film.shots[frame]
            pressed = frozenset(name for name, travel in shot.travel.items() if travel < BUTTON_DOWN)
            states.append((shot.held, shot.touched, shot.is_open, pressed, shot.lamp))
        changed = {at for at in range(1, len(states)) if states[at] != states[at - 1]}
        _FOUND[id(film.frames)] = sorted(changed | {at - 1 for at in changed})
    return _FOUND[id(film.frames)]
