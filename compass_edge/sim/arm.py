"""The arm: where the fingertips should be becomes joint angles, and a few motions are made of that."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from compass_edge.sim.dice import Dice
from compass_edge.sim.manner import Manner
from compass_edge.sim.panda import CLOSED, HOME, JOINTS, OPEN
from compass_edge.sim.scene import TIMESTEP
from compass_edge.sim.things import GRASPS, Place, Thing
from compass_edge.sim.world import World

READY = (0.02, 0.0, 0.22)  # where the hand waits
_EVERY = 5  # physics steps between two looks at the joints: 50 a second
_CARRY, _LOWER, _FREE = 0.25, 0.17, 0.28  # metres a second
_CLEARANCE = 0.0025  # above its rest a thing is let go
# Angles are rounded to a ten-millionth: the last bits of linear algebra differ from one processor to the next.
_DIGITS = 7


class Arm:
    def __init__(self, world: World, manner: Manner, dice: Dice) -> None:
        self.world, self._manner, self._dice = world, manner, dice
        model = world.model
        self._mind = mujoco.MjData(model)  # where the inverse kinematics try things out
        self._angles_at = [int(model.joint(joint).qposadr[0]) for joint in JOINTS]
        self._speeds_at = [int(model.joint(joint).dofadr[0]) for joint in JOINTS]
        self._angles = np.array(HOME)
        self._target = world.gripper
        self._opening = OPEN
        self._clock = 0
        self._upright = self._looking_down()

    # -- motions ---------------------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / TIMESTEP)):
            self._step()

    def dawdle(self) -> None:
        """A pause now and then, and now and then a longer one."""
        if self._dice.chance(self._manner.pause):
            self.wait(self._dice.uniform(0.1, 0.5 if self._dice.chance(0.7) else 1.2))

    def move(self, to: Sequence[float] | NDArray[np.float64], speed: float = _FREE, sway: float = 0.0) -> None:
        """In a line that swings out by up to `sway`, slow at both ends."""
        begin, end = self._target.copy(), np.array(to, float)
        way = end - begin
        seconds = max(0.3, np.sqrt(np.sum(way * way)) / speed * 1.3) / self._manner.speed
        aside = np.array([-way[1], way[0], 0.0])
        length = np.sqrt(np.sum(aside * aside))
        aside = aside / length * self._dice.uniform(-sway, sway) if length > 0.05 else aside * 0
        steps = round(seconds / TIMESTEP)
        for step in range(1, steps + 1):
            part = step / steps
            part = part * part * (3 - 2 * part)
            self._target = begin + way * part + aside * (4 * part * (1 - part))
            self._step()

    def retreat(self) -> None:
        """Back to where the hand waits, as often as it is this arm's manner."""
        if self._dice.chance(self._manner.retreat):
            self.ready()
            self.wait(self._dice.uniform(0.1, 0.6))

    def ready(self) -> None:
        self.move(READY, sway=0.02)

    def pick(self, thing: Thing) -> None:
        grasp = GRASPS[thing.kind]
        aside = np.array([self._dice.uniform(-0.003, 0.003), self._dice.uniform(-0.003, 0.003), grasp.above])
        at = self.world.centre(thing) + aside
        self._opening = OPEN
        self.move([at[0], at[1], max(at[2] + 0.06, grasp.lift)], sway=0.02)
        if self._dice.chance(self._manner.miss):
            self.move([at[0], at[1], at[2] + 0.05], _LOWER)
            self._close(grasp.half_width)
            self.move([at[0], at[1], at[2] + 0.10], _LOWER)
            self._opening = OPEN
            self.wait(0.3)
        self.move(at, _LOWER)
        self.wait(0.15)
        self._close(grasp.half_width)
        if self._dice.chance(self._manner.regrasp):
            self._opening = OPEN
            self.wait(0.3)
            self._close(grasp.half_width)
        self.world.hold(thing)
        self.move([at[0], at[1], at[2] + grasp.lift], _CARRY)

    def put(self, thing: Thing, place: Place) -> None:
        """What is held, onto the place; into a box it falls the last bit."""
        grasp = GRASPS[thing.kind]
        x, y = place.at
        self.move([x, y, max(self._target[2], 0.20 if place.within else 0.0)], sway=0.02)
        rest = thing.rest(place.base) + grasp.above
        self.move([x, y, rest + (0.095 if place.within else _CLEARANCE)], _LOWER)
        self.wait(0.15)
        self.world.release()
        self._opening = OPEN
        self.wait(0.3)
        self.move([x, y, rest + max(grasp.lift, 0.14 if place.within else 0.0)], _FREE)

    def push(self, x: float, y: float, down: float, up: float) -> None:
        """With closed fingers: from above, down, a moment there, up again."""
        self._opening = CLOSED
        self.move([x, y, up], sway=0.02)
        self.move([x, y, down], 0.16)
        self.wait(0.15)
        self.move([x, y, up + self._dice.uniform(-0.01, 0.02)], 0.2)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _close(self, half_width: float) -> None:
        self._opening = half_width
        self.wait(0.35)

    def _step(self) -> None:
        if self._clock % _EVERY == 0:
            self._solve()
        self.world.data.ctrl[7], self.world.data.ctrl[8] = self._opening, -self._opening
        self._clock += 1
        self.world.step()

    def _solve(self) -> None:
        """Damped least squares towards the target, hand upright, and otherwise as near to HOME as that allows."""
        model, mind = self.world.model, self._mind
        mind.qpos[:] = self.world.data.qpos
        jacobian = np.zeros((6, model.nv))
        for _ in range(4):
            mind.qpos[self._angles_at] = self._angles
            mujoco.mj_kinematics(model, mind)
            mujoco.mj_comPos(model, mind)
            turn = self._upright @ mind.site_xmat[self.world.grip_site].reshape(3, 3).T
            error = np.empty(6)
            error[:3] = self._target - mind.site_xpos[self.world.grip_site]
            error[3:] = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
            mujoco.mj_jacSite(model, mind, jacobian[:3], jacobian[3:], self.world.grip_site)
            own = jacobian[:, self._speeds_at]
            inverse = own.T @ np.linalg.inv(own @ own.T + 1e-4 * np.eye(6))
            change = inverse @ error + (np.eye(7) - inverse @ own) @ (0.05 * (np.array(HOME) - self._angles))
            self._angles = np.round(self._angles + np.clip(change, -0.2, 0.2), _DIGITS)
        self.world.data.ctrl[:7] = self._angles

    def _looking_down(self) -> NDArray[np.float64]:
        """The hand's axes: it points down, and its fingers open along y."""
        now = self.world.data.site_xmat[self.world.grip_site].reshape(3, 3)
        down = np.array([0.0, 0.0, -1.0])
        ahead = np.round(now[:, 0] - down * (now[:, 0] @ down))
        return np.stack([ahead, np.cross(down, ahead), down], axis=1)
