"""Things on the table. Lengths in metres; x grows towards the camera, y to its right, z up from the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["block", "tube", "cover", "mat", "rack", "button", "box", "lamp", "toy"]
Spot = tuple[float, float]

COLOURS = {
    "red": (0.80, 0.10, 0.08),
    "green": (0.10, 0.55, 0.18),
    "blue": (0.10, 0.25, 0.75),
    "yellow": (0.92, 0.76, 0.10),
    "purple": (0.45, 0.15, 0.60),
    "orange": (0.95, 0.45, 0.08),
    "white": (0.93, 0.93, 0.92),
    "gray": (0.42, 0.43, 0.45),
    "brown": (0.50, 0.34, 0.20),
    "black": (0.18, 0.18, 0.20),
}
MOVABLE: tuple[Kind, ...] = ("block", "tube", "cover")
MAT_TOP = 0.003
SLOT_PITCH = 0.075
BOX_HALF, BOX_HEIGHT = 0.058, 0.115
BUTTON_DOWN, BUTTON_UP = -0.008, -0.003  # travel of a cap that is pressed, and of one that is released again


@dataclass(frozen=True, slots=True)
class Grasp:
    """How the fingers take hold of a kind of thing."""

    above: float  # of the body's centre to where the fingertips go
    half_width: float  # between the closed fingers
    lift: float  # how high above the grasp it is carried


GRASPS: dict[str, Grasp] = {
    "block": Grasp(0.0, 0.017, 0.13),
    "tube": Grasp(0.048, 0.0105, 0.17),
    "cover": Grasp(0.051, 0.012, 0.19),
}
# How far off its place a thing may stand and still be there.
NEAR: dict[str, float] = {"block": 0.030, "tube": 0.012, "cover": 0.020}


@dataclass(frozen=True, slots=True)
class Thing:
    """`at` is where it stands on the table, `drawn_at` where the task's drawing has it, before chance moved it."""

    name: str
    kind: Kind
    colour: str
    role: str  # what it is to the task: things of one role look alike, whatever their colour in this episode
    at: Spot
    drawn_at: Spot
    size: float = 0.022  # half the edge of a block
    slots: int = 0  # of a rack
    base: float = 0.0  # what it stands on, above the table

    def rest(self, base: float) -> float:
        """The height of its centre when it stands on something of height `base`."""
        return base + {"block": self.size, "tube": 0.045, "cover": 0.033}[self.kind]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thing can be put: a spot, and the height of what is there."""

    name: str  # "the leftmost blue mat"
    at: Spot
    drawn_at: Spot
    base: float = 0.0
    within: float | None = None  # a box: everywhere inside counts
