"""Acts: what a step asks for. How the arm does it, and how the shots since the step began tell that it is done.

An act is underway once it can no longer be mistaken for the moment before it: the button is down, the block is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from compass_edge.sim.shot import Shot
from compass_edge.sim.things import BUTTON_DOWN, BUTTON_UP, NEAR, Place, Thing

if TYPE_CHECKING:
    from compass_edge.sim.arm import Arm

RAISED = 0.05  # above where it rested
_TAP_LOW, _TAP_HIGH, _TAP_NEAR = 0.025, 0.06, 0.045

Shots = Sequence[Shot]


class Act(Protocol):
    def do(self, arm: Arm) -> None: ...
    def underway(self, shots: Shots) -> bool: ...
    def done(self, shots: Shots) -> bool: ...


def rests(shot: Shot, thing: Thing, place: Place) -> bool:
    """It stands on its place, or lies in its box, and the fingers have let go of it."""
    x, y, z = shot.bodies[thing.name]
    aside = max(abs(x - place.at[0]), abs(y - place.at[1]))
    if place.within is not None:
        there = aside < place.within and z < thing.rest(place.base) + 0.05
    else:
        there = aside < NEAR[thing.kind] and abs(z - thing.rest(place.base)) < 0.012
    return there and shot.held != thing.name and thing.name not in shot.touched and shot.is_open


@dataclass(frozen=True, slots=True)
class Carry:
    thing: Thing
    place: Place

    def do(self, arm: Arm) -> None:
        arm.pick(self.thing)
        arm.put(self.thing, self.place)

    def underway(self, shots: Shots) -> bool:
        return any(shot.held == self.thing.name for shot in shots)

    def done(self, shots: Shots) -> bool:
        return self.underway(shots) and rests(shots[-1], self.thing, self.place)


@dataclass(frozen=True, slots=True)
class Lift:
    """Up, a moment there, and back to where it was."""

    thing: Thing
    place: Place
    linger: float = 0.2  # seconds

    def do(self, arm: Arm) -> None:
        arm.pick(self.thing)
        arm.wait(self.linger)
        arm.put(self.thing, self.place)

    def underway(self, shots: Shots) -> bool:
        rest = self.thing.rest(self.place.base)
        return any(shot.bodies[self.thing.name][2] > rest + RAISED for shot in shots)

    def done(self, shots: Shots) -> bool:
        return self.underway(shots) and rests(shots[-1], self.thing, self.place)


@dataclass(frozen=True, slots=True)
class Press:
    button: Thing

    def do(self, arm: Arm) -> None:
        arm.push(*self.button.at, 0.038, 0.14)

    def underway(self, shots: Shots) -> bool:
        return any(shot.travel[self.button.name] < BUTTON_DOWN for shot in shots)

    def done(self, shots: Shots) -> bool:
        return self.underway(shots) and shots[-1].travel[self.button.name] > BUTTON_UP


@dataclass(frozen=True, slots=True)
class Tap:
    mat: Thing

    def do(self, arm: Arm) -> None:
        arm.push(*self.mat.at, 0.010, 0.13)

    def underway(self, shots: Shots) -> bool:
        return any(self._near(shot) and shot.gripper[2] < _TAP_LOW for shot in shots)

    def done(self, shots: Shots) -> bool:
        return self.underway(shots) and shots[-1].gripper[2] > _TAP_HIGH

    def _near(self, shot: Shot) -> bool:
        return max(abs(shot.gripper[0] - self.mat.at[0]), abs(shot.gripper[1] - self.mat.at[1])) < _TAP_NEAR


@dataclass(frozen=True, slots=True)
class Watch:
    """The lamp shows colours, one after the other; the arm waits."""

    colours: tuple[str, ...]
    shine: float = 1.0  # seconds
    dark: float = 0.5

    def do(self, arm: Arm) -> None:
        arm.wait(0.5)
        for colour in self.colours:
            arm.world.shine(colour)
            arm.wait(self.shine)
            arm.world.shine(None)
            arm.wait(self.dark)

    def underway(self, shots: Shots) -> bool:
        return any(shot.lamp is not None for shot in shots)

    def done(self, shots: Shots) -> bool:
        ends = sum(before.lamp is not None and after.lamp is None for before, after in pairwise(shots))
        return ends >= len(self.colours)
