"""The world: MuJoCo's model and data of a scene, and the little that physics leaves out, a lamp and what its buttons do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from compass_edge.sim.look import Look
from compass_edge.sim.panda import FINGERS, HOME, JOINTS, OPEN
from compass_edge.sim.scene import TIMESTEP, scene_xml, weld
from compass_edge.sim.shot import Point, Shot, rounded
from compass_edge.sim.things import BUTTON_DOWN, BUTTON_UP, COLOURS, MOVABLE, Thing

FPS = 10
_ROUND_EVERY, _DIGITS = 5, 6  # physics steps; metres, radians and their rates: a millionth
_DARK = (0.16, 0.16, 0.17)


class World:
    """`on_shot` gets the state at every frame. `switches`: buttons that turn the lamp on, in that colour, and off."""

    def __init__(
        self, things: Sequence[Thing], look: Look, assets: Path, on_shot: Callable[[Shot], None],
        switches: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.model = mujoco.MjModel.from_xml_string(scene_xml(things, look, assets))
        self.data = mujoco.MjData(self.model)
        self.things = {thing.name: thing for thing in things}
        self.held: str | None = None
        self.lamp: str | None = None
        self._on_shot, self._switches = on_shot, dict(switches or {})
        self._pressed: set[str] = set()
        self._steps, self._per_shot = 0, round(1 / FPS / TIMESTEP)
        self._buttons = {
            name: self._address(f"{name}_travel") for name, thing in self.things.items() if thing.kind == "button"
        }
        self._movable = {name: self.model.body(name).id for name, thing in self.things.items() if thing.kind in MOVABLE}
        self._pads = {geom for geom in range(self.model.ngeom) if "pad" in (self.model.geom(geom).name or "")}
        self.grip_site = self.model.site("grip_site").id
        self._finger = self._address(FINGERS[0])
        for joint, angle in zip(JOINTS, HOME, strict=True):
            self.data.qpos[self._address(joint)] = angle
        for joint, way in zip(FINGERS, (OPEN, -OPEN), strict=True):
            self.data.qpos[self._address(joint)] = way
        self.data.ctrl[:] = [*HOME, OPEN, -OPEN]
        mujoco.mj_forward(self.model, self.data)

    @property
    def gripper(self) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.data.site_xpos[self.grip_site].copy()
        return found

    def centre(self, thing: Thing) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.data.body(thing.name).xpos.copy()
        return found

    def step(self) -> None:
        mujoco.mj_step(self.model, self.data)
        self._switch()
        self._steps += 1
        if self._steps % _ROUND_EVERY == 0:
            self._round()
        if self._steps % self._per_shot == 0:
            self._on_shot(self.shot())

    def hold(self, thing: Thing) -> None:
        """From here on it moves with the hand."""
        hand, body = self.data.body("right_hand"), self.data.body(thing.name)
        turned, relative = np.zeros(4), np.zeros(4)
        mujoco.mju_negQuat(turned, hand.xquat)
        mujoco.mju_mulQuat(relative, turned, body.xquat)
        equality = self.model.equality(weld(thing)).id
        data = self.model.eq_data[equality]
        data[0:3] = 0
        data[3:6] = hand.xmat.reshape(3, 3).T @ (body.xpos - hand.xpos)
        data[6:10] = relative
        data[10] = 1
        self.data.eq_active[equality] = 1
        self.held = thing.name

    def release(self) -> None:
        if self.held is not None:
            self.data.eq_active[self.model.equality(weld(self.things[self.held])).id] = 0
        self.held = None

    def shine(self, colour: str | None) -> None:
        self.lamp = colour
        material = self.model.material("lamp").id
        self.model.mat_rgba[material, :3] = _DARK if colour is None else COLOURS[colour]
        self.model.mat_emission[material] = 0.0 if colour is None else 0.5

    def shot(self) -> Shot:
        data = self.data
        return Shot(
            gripper=_point(data.site_xpos[self.grip_site]),
            opening=rounded(data.qpos[self._finger]),
            held=self.held,
            bodies={name: _point(data.xpos[body]) for name, body in self._movable.items()},
            touched=self._touched(),
            travel={name: rounded(data.qpos[address]) for name, address in self._buttons.items()},
            lamp=self.lamp,
        )

    def _touched(self) -> frozenset[str]:
        owner = {body: name for name, body in self._movable.items()}
        found = set()
        for contact in self.data.contact[: self.data.ncon]:
            pair = (contact.geom1, contact.geom2)
            if any(geom in self._pads for geom in pair):
                found |= {owner[body] for geom in pair if (body := self.model.geom_bodyid[geom]) in owner}
        return frozenset(found)

    def _switch(self) -> None:
        for name, colour in self._switches.items():
            travel = self.data.qpos[self._buttons[name]]
            if travel < BUTTON_DOWN and name not in self._pressed:
                self._pressed.add(name)
                self.shine(None if self.lamp else colour)
            elif travel > BUTTON_UP:
                self._pressed.discard(name)

    def _round(self) -> None:
        """What another processor computes otherwise in the last bits is made the same before it can grow."""
        for values in (self.data.qpos, self.data.qvel, self.data.qacc_warmstart):
            values[:] = np.round(values, _DIGITS)
        mujoco.mj_normalizeQuat(self.model, self.data.qpos)

    def _address(self, joint: str) -> int:
        return int(self.model.joint(joint).qposadr[0])


def _point(values: NDArray[np.float64]) -> Point:
    return (rounded(values[0]), rounded(values[1]), rounded(values[2]))
