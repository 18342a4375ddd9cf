"""A shot: the physical state at a frame. Predicates read shots and nothing else, so that they can be checked again later."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Shot:
    """Lengths in metres, to a tenth of a millimetre."""

    gripper: Point  # between the fingertips
    opening: float  # of one finger, from the middle
    held: str | None
    bodies: Mapping[str, Point]  # centres of what can be moved
    touched: frozenset[str]  # by the fingertips
    travel: Mapping[str, float]  # of buttons' caps; negative is down
    lamp: str | None  # its colour, while it shines

    @property
    def is_open(self) -> bool:
        return self.opening > 0.03


def rounded(value: float) -> float:
    return round(float(value), 4) + 0.0  # no negative zero: it would print otherwise


def state_hash(shots: Sequence[Shot]) -> str:
    """Of tenths of a millimetre, so that the last bits of a processor's arithmetic do not count."""
    hashed = hashlib.sha256()
    for shot in shots:
        places = [*shot.gripper, shot.opening, *(value for point in shot.bodies.values() for value in point),
                  *shot.travel.values()]  # fmt: skip
        hashed.update(
            repr(([round(value * 1e4) for value in places], shot.held, sorted(shot.touched), shot.lamp)).encode()
        )
    return hashed.hexdigest()[:16]
