"""The scene as MuJoCo reads it: table, room, light, camera, the Panda and the things of a task."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compass_edge.sim.look import Look, Vector
from compass_edge.sim.panda import panda
from compass_edge.sim.thing_shapes import shape
from compass_edge.sim.things import MOVABLE, Thing

TIMESTEP = 0.004  # seconds
_SHADOW = 1024  # pixels of the shadow's map: with 4096 a picture takes twice the time


def scene_xml(things: Sequence[Thing], look: Look, assets: Path) -> str:
    root = ET.fromstring(_ROOM.format(**_words(look, assets)))
    parts, base, servos = panda(assets)
    _child(root, "asset").extend(parts)
    world = _child(root, "worldbody")
    world.append(base)
    world.extend(shape(thing) for thing in things)
    _child(root, "actuator").extend(servos)
    for thing in things:
        if thing.kind in MOVABLE:
            # Switched on when the fingers have closed: a grasp that never slips.
            ET.SubElement(
                _child(root, "equality"), "weld", name=weld(thing), body1="right_hand", body2=thing.name, active="false",
                solref=".004 1",
            )  # fmt: skip
    return ET.tostring(root, encoding="unicode")


def weld(thing: Thing) -> str:
    return f"weld_{thing.name}"


def _child(root: ET.Element, tag: str) -> ET.Element:
    found = root.find(tag)
    assert found is not None, tag
    return found


def _words(look: Look, assets: Path) -> dict[str, str]:
    textures = assets / "textures"
    back = np.subtract(look.camera, look.camera_at)
    back = back / np.sqrt(np.sum(back * back))
    right = np.cross((0.0, 0.0, 1.0), back)
    right = right / np.sqrt(np.sum(right * right))
    return {
        "timestep": str(TIMESTEP),
        "shadow": str(_SHADOW),
        "table": str(textures / f"{look.table}.png"),
        "wall": str(textures / f"{look.wall}.png"),
        "floor": str(textures / f"{look.floor}.png"),
        "steel": str(textures / "steel-brushed.png"),
        "ambient": _numbers((look.ambient,) * 3),
        "light": _numbers(look.light),
        "light_from": _numbers(look.light_from),
        "light_to": _numbers(tuple(-value for value in look.light_from)),
        "camera": _numbers(look.camera),
        "camera_axes": _numbers((*right, *np.cross(back, right))),
    }


def _numbers(values: Vector | tuple[float, ...]) -> str:
    return " ".join(f"{value:.6f}" for value in values)


_ROOM = """
<mujoco model="context_progress_sim">
  <compiler angle="radian" autolimits="true" meshdir="/"/>
  <option timestep="{timestep}" integrator="implicitfast" cone="elliptic" impratio="10"
          tolerance="0" iterations="20" ls_iterations="50" ls_tolerance="1e-10"/>
  <visual>
    <quality shadowsize="{shadow}" offsamples="0"/>
    <global offwidth="896" offheight="896" fovy="45"/>
    <headlight ambient="{ambient}" diffuse=".28 .28 .28" specular="0 0 0"/>
    <map znear=".02" shadowclip="1" shadowscale=".5"/>
  </visual>
  <asset>
    <texture name="table" type="2d" file="{table}"/>
    <material name="table" texture="table" texrepeat="1 1" specular=".2" shininess=".2"/>
    <texture name="wall" type="2d" file="{wall}"/>
    <material name="wall" texture="wall" texrepeat="3 3"/>
    <texture name="floor" type="2d" file="{floor}"/>
    <material name="floor" texture="floor" texrepeat="4 4" texuniform="true"/>
    <texture name="steel" type="2d" file="{steel}"/>
    <material name="steel" texture="steel" specular=".5"/>
    <material name="lamp" rgba=".2 .2 .2 1" emission="0"/>
  </asset>
  <worldbody>
    <light pos="{light_from}" dir="{light_to}" diffuse="{light}" specular=".2 .2 .2" castshadow="true" type="directional"/>
    <light pos="1 1 2" dir="-.5 -.5 -1" diffuse=".16 .16 .18" castshadow="false" type="directional"/>
    <geom name="floor" type="plane" size="4 4 .1" pos="0 0 -.8" material="floor"/>
    <geom name="wall" type="box" size=".02 3 1.6" pos="-1.4 0 .6" material="wall" contype="0" conaffinity="0"/>
    <geom name="table" type="box" size=".45 .60 .02" pos="0 0 -.02" material="table" friction="1 .005 .0001"/>
    <geom type="box" size=".12 .12 .4" pos="-.56 0 -.4" rgba=".25 .25 .27 1" contype="0" conaffinity="0"/>
    <geom type="cylinder" size=".025 .38" pos=".4 .5 -.42" material="steel"/>
    <geom type="cylinder" size=".025 .38" pos=".4 -.5 -.42" material="steel"/>
    <camera name="front" pos="{camera}" fovy="34" xyaxes="{camera_axes}"/>
  </worldbody>
  <equality/>
  <actuator/>
</mujoco>
"""
