"""The shapes of things, as MuJoCo bodies."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from compass_edge.sim.things import BOX_HALF, BOX_HEIGHT, COLOURS, MOVABLE, SLOT_PITCH, Thing

_HOLE, _RACK_HALF_HEIGHT, _BAR = 0.0165, 0.030, 0.011  # of a rack: half a slot's width, and the bars around it
_SOFT = 'condim="4" friction="1 .02 .001"'
_GHOST = 'contype="0" conaffinity="0"'
# Round things are seen and boxes collide: where boxes meet is computed, where cylinders meet is searched for, and what the
# search finds hangs on the last bits of a processor's arithmetic.
_UNSEEN = 'group="3"'


def shape(thing: Thing) -> ET.Element:
    height = thing.rest(thing.base) + 0.001 if thing.kind in MOVABLE else 0.0
    joint = "<freejoint/>" if thing.kind in MOVABLE else ""
    inside = _SHAPES[thing.kind](thing)
    x, y = thing.at
    return ET.fromstring(f'<body name="{thing.name}" pos="{x} {y} {height:.4f}">{joint}{inside}</body>')


def rgba(colour: str, alpha: float = 1.0) -> str:
    return " ".join(f"{value}" for value in (*COLOURS[colour], alpha))


def _block(thing: Thing) -> str:
    s = thing.size
    return f'<geom type="box" size="{s} {s} {s}" rgba="{rgba(thing.colour)}" mass=".06" {_SOFT}/>'


def _mat(thing: Thing) -> str:
    return (
        f'<geom type="box" size=".055 .055 .0015" pos="0 0 .0015" rgba="{rgba(thing.colour)}" friction="1 .005 .0001"/>'
    )


def _tube(thing: Thing) -> str:
    colour = rgba(thing.colour)
    return (
        f'<geom type="box" size=".0115 .0115 .045" mass=".03" {_SOFT} {_UNSEEN}/>'
        f'<geom type="box" size=".0135 .0135 .013" pos="0 0 .05" mass=".01" {_SOFT} {_UNSEEN}/>'
        f'<geom type="cylinder" size=".0125 .045" rgba=".85 .9 .95 .75" mass="0" {_GHOST}/>'
        f'<geom type="cylinder" size=".0145 .013" pos="0 0 .05" rgba="{colour}" mass="0" {_GHOST}/>'
        f'<geom type="cylinder" size=".0105 .02" pos="0 0 -.024" rgba="{colour}" mass="0" {_GHOST}/>'
    )


def _rack(thing: Thing) -> str:
    colour, half, tall = rgba(thing.colour), thing.slots * SLOT_PITCH / 2, _RACK_HALF_HEIGHT
    wall = SLOT_PITCH / 2 - _HOLE
    bars = [(side * (_HOLE + _BAR), 0.0, _BAR, half) for side in (-1, 1)]
    for index in range(thing.slots + 1):
        outer = index in (0, thing.slots)
        inward = wall / 2 if index == 0 else -wall / 2
        bars.append((0.0, index * SLOT_PITCH - half + (inward if outer else 0), _HOLE, wall / 2 if outer else wall))
    geoms = "".join(
        f'<geom type="box" size="{a:.4f} {b:.4f} {tall}" pos="{x:.4f} {y:.4f} {tall}" rgba="{colour}"/>'
        for x, y, a, b in bars
    )
    return geoms + f'<geom type="box" size="{_HOLE + 2 * _BAR} {half} .003" pos="0 0 .003" rgba="{colour}"/>'


def _button(thing: Thing) -> str:
    return (
        f'<geom type="box" size=".05 .05 .012" pos="0 0 .012" rgba=".30 .31 .33 1" {_GHOST}/>'
        f'<geom type="cylinder" size=".034 .004" pos="0 0 .026" rgba=".75 .75 .76 1" {_GHOST}/>'
        f'<body pos="0 0 .030"><joint name="{thing.name}_travel" type="slide" axis="0 0 1" range="-.014 0" stiffness="300" '
        f'springref=".004" damping="6" armature=".02"/>'
        f'<geom type="box" size=".018 .018 .014" pos="0 0 .008" mass=".05" {_UNSEEN}/>'
        f'<geom type="cylinder" size=".026 .014" pos="0 0 .008" rgba="{rgba(thing.colour)}" mass="0" {_GHOST}/></body>'
    )


def _walls(half: float, tall: float, thick: float, colour: str, *, middle: float, mass: str = "") -> str:
    sides = ((thick, half, half, 0), (thick, half, -half, 0), (half, thick, 0, half), (half, thick, 0, -half))
    return "".join(
        f'<geom type="box" size="{a} {b} {tall}" pos="{x} {y} {middle}" rgba="{colour}" {mass}/>'
        for a, b, x, y in sides
    )


def _box(thing: Thing) -> str:
    colour = rgba(thing.colour)
    bottom = f'<geom type="box" size="{BOX_HALF} {BOX_HALF} .002" pos="0 0 .002" rgba="{colour}"/>'
    return _walls(BOX_HALF, BOX_HEIGHT / 2, 0.004, colour, middle=BOX_HEIGHT / 2) + bottom


def _cover(thing: Thing) -> str:
    """A cup upside down, with a knob to take it by."""
    colour, half, tall = rgba(thing.colour), 0.036, 0.032
    return (
        _walls(half, tall, 0.003, colour, middle=0.0, mass='mass=".01"')
        + f'<geom type="box" size="{half} {half} .003" pos="0 0 {tall}" rgba="{colour}" mass=".02"/>'
        + f'<geom type="box" size=".012 .016 .016" pos="0 0 {tall + 0.019}" rgba=".2 .2 .2 1" mass=".01" {_SOFT}/>'
    )


def _lamp(_thing: Thing) -> str:
    return (
        f'<geom type="cylinder" size=".042 .012" pos="0 0 .012" rgba=".25 .25 .27 1" {_GHOST}/>'
        f'<geom type="cylinder" size=".012 .03" pos="0 0 .05" rgba=".6 .6 .62 1" {_GHOST}/>'
        f'<geom type="sphere" size=".036" pos="0 0 .11" material="lamp" {_GHOST}/>'
    )


def _toy(thing: Thing) -> str:
    s = thing.size
    return f'<geom type="capsule" size="{s:.4f} {s * 0.6:.4f}" pos="0 0 {1.6 * s:.4f}" rgba="{rgba(thing.colour)}" {_GHOST}/>'


_SHAPES = {
    "block": _block, "mat": _mat, "tube": _tube, "rack": _rack, "button": _button, "box": _box, "cover": _cover,
    "lamp": _lamp, "toy": _toy,
}  # fmt: skip
