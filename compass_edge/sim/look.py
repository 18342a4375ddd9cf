"""The look of an episode: what carries no progress. Textures, light, where the camera stands."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.sim.assets import FLOORS, TABLES, WALLS
from compass_edge.sim.dice import Dice

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Look:
    table: str
    wall: str
    floor: str
    light_from: Vector
    light: Vector  # its colour and strength
    ambient: float
    camera: Vector
    camera_at: Vector  # what it looks at

    @classmethod
    def drawn(cls, dice: Dice) -> Look:
        strength, warmth = dice.uniform(0.34, 0.52), dice.uniform(-0.05, 0.05)
        return cls(
            table=dice.choice(TABLES),
            wall=dice.choice(WALLS),
            floor=dice.choice(FLOORS),
            light_from=(dice.uniform(0.2, 0.6), dice.uniform(-0.8, 0.8), 1.8),
            light=(strength + warmth, strength, strength - warmth),
            ambient=dice.uniform(0.26, 0.34),
            camera=(dice.uniform(0.88, 0.96), dice.uniform(-0.06, 0.06), dice.uniform(0.66, 0.74)),
            camera_at=(dice.uniform(0.01, 0.04), dice.uniform(-0.02, 0.02), 0.06),
        )
