"""Strangers: pictures of other places, on which nothing of ours stands, whatever the instruction says.

A model that has only ever seen one table takes every picture for it, and what it is told to do for something that it could see. Other
things stand on our table here, seen from our camera, or the same and simpler rooms are seen from elsewhere, with the arm and without.
A stranger is a Footage like an opening, whose script has no things and no places.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from compass_edge.sim.assets import panda_assets
from compass_edge.sim.dice import Dice
from compass_edge.sim.look import Look, Vector
from compass_edge.sim.panda import HOME, JOINTS
from compass_edge.sim.scene import scene_xml
from compass_edge.sim.shot import Shot
from training.footage import CELL, NOTHING, SIDE, Footage, halved, training_script

_VIEWS = 4  # of a scene
_OURS = 0.35  # of scenes that are seen from our camera
_BARE = 0.3  # of scenes without our room and arm
_NOBODY = Shot((0.0, 0.0, 0.3), 0.04, None, {}, frozenset(), {}, None)
# What our tables never have; from elsewhere also what they have.
_ROUND, _ANY = ("sphere", "ellipsoid", "capsule"), ("sphere", "ellipsoid", "capsule", "box", "cylinder")


def strangers(task: str, seed: int) -> list[Footage]:
    """Some views of one scene."""
    dice = Dice(task, seed, "strangers")
    script = replace(training_script(task, seed), things=(), places=())
    ours = dice.chance(_OURS)
    root = _bare(dice) if not ours and dice.chance(_BARE) else _room(dice)
    world = root.find("worldbody")
    assert world is not None
    for number in range(dice.whole(0 if ours else 2, 8)):
        world.append(_thing(dice, number, _ROUND if ours else _ANY))
    model = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
    data = mujoco.MjData(model)
    found = []
    with mujoco.Renderer(model, 2 * SIDE, 2 * SIDE, max_geom=400) as eyes:
        for _ in range(_VIEWS):
            _bend(model, data, dice)
            _stand(model, dice, ours=ours)
            mujoco.mj_forward(model, data)
            eyes.update_scene(data, "front")
            found.append(_shown(script, halved(eyes.render())))
    return found


def _shown(script: object, picture: NDArray[np.uint8]) -> Footage:
    cells = np.full((SIDE // CELL, SIDE // CELL), NOTHING, np.uint8)
    blank = np.zeros((SIDE, SIDE), np.uint8)
    return Footage(script, [_NOBODY], [], [0], picture[None], cells[None], blank[None])  # type: ignore[arg-type]


def _room(dice: Dice) -> ET.Element:
    return ET.fromstring(scene_xml((), Look.drawn(dice), panda_assets()))


def _bare(dice: Dice) -> ET.Element:
    """A table of one colour or of two, in a room of one colour."""
    first, second, sky, _ = (_paint(dice) for _ in range(4))
    pattern = dice.choice(("flat", "gradient", "checker"))
    return ET.fromstring(f"""
<mujoco>
  <visual><quality shadowsize="1024" offsamples="0"/><global offwidth="{2 * SIDE}" offheight="{2 * SIDE}"/>
    <headlight ambient=".3 .3 .3" diffuse=".3 .3 .3"/></visual>
  <asset>
    <texture name="sky" type="skybox" builtin="flat" rgb1="{sky}" width="16" height="96"/>
    <texture name="table" type="2d" builtin="{pattern}" rgb1="{first}" rgb2="{second}" width="64" height="64"/>
    <material name="table" texture="table" texrepeat="{dice.whole(1, 6)} {dice.whole(1, 6)}"/>
  </asset>
  <worldbody>
    <light pos="{dice.uniform(-1, 1):.2f} {dice.uniform(-1, 1):.2f} 2" dir="0 0 -1" diffuse=".6 .6 .6" castshadow="true" type="directional"/>
    <geom type="box" size="{dice.uniform(0.3, 1.5):.2f} {dice.uniform(0.3, 1.5):.2f} .02" pos="0 0 -.02" material="table"/>
    <camera name="front" pos="1 0 .7" fovy="{dice.uniform(25, 60):.1f}"/>
  </worldbody>
</mujoco>""")


def _thing(dice: Dice, number: int, kinds: tuple[str, ...]) -> ET.Element:
    """Anything, of any colour, somewhere on the table."""
    x, y, high = dice.uniform(-0.2, 0.3), dice.uniform(-0.35, 0.35), dice.uniform(0.01, 0.08)
    size = " ".join(f"{dice.uniform(0.01, 0.06):.3f}" for _ in range(2)) + f" {high:.3f}"
    return ET.Element(
        "geom", name=f"stranger_{number}", type=dice.choice(kinds), size=size, rgba=f"{_paint(dice)} 1",
        pos=f"{x:.3f} {y:.3f} {high:.3f}", euler=f"0 0 {dice.uniform(0, 3.14):.2f}", contype="0", conaffinity="0",
    )  # fmt: skip


def _paint(dice: Dice) -> str:
    return " ".join(f"{dice.uniform(0.03, 1):.2f}" for _ in range(3))


def _bend(model: mujoco.MjModel, data: mujoco.MjData, dice: Dice) -> None:
    """The arm, where there is one."""
    if model.njnt:
        for joint, angle in zip(JOINTS, HOME, strict=True):
            data.qpos[model.joint(joint).qposadr[0]] = angle + dice.uniform(-0.35, 0.35)


def _stand(model: mujoco.MjModel, dice: Dice, *, ours: bool) -> None:
    """Our camera's place, or any other that sees the table."""
    look = Look.drawn(dice)
    place, aim = look.camera, look.camera_at
    if not ours:
        far, turn, rise = dice.uniform(0.5, 1.8), dice.uniform(-3.1, 3.1), dice.uniform(0.2, 1.5)
        place = (far * np.cos(turn) * np.cos(rise), far * np.sin(turn) * np.cos(rise), 0.05 + far * np.sin(rise))
        aim = (dice.uniform(-0.15, 0.15), dice.uniform(-0.2, 0.2), dice.uniform(0, 0.2))
    camera = model.camera("front").id
    model.cam_pos[camera] = place
    mujoco.mju_mat2Quat(model.cam_quat[camera], looking(place, aim).flatten())


def looking(place: Vector, aim: Vector) -> NDArray[np.float64]:
    """The axes of a camera there, upright, as columns."""
    back = np.subtract(place, aim)
    back /= np.linalg.norm(back)
    right = np.cross((0.0, 0.0, 1.0), back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back], 1)
