"""The Panda as the scene takes it in: its own description, with light meshes, servos instead of motors, no collisions but
those of the fingertips."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

HOME = (0.0, 0.35, 0.0, -2.10, 0.0, 2.45, 0.785)  # radians
JOINTS = tuple(f"joint{number}" for number in range(1, 8))
FINGERS = ("finger_joint1", "finger_joint2")
OPEN, CLOSED = 0.04, 0.002  # a finger's way from the middle; closed they do not touch, which would be a matter of bits
_STIFFNESS = (3000, 3000, 3000, 3000, 1500, 1500, 1500)
_BASE_AT = "-.56 0 0"


def panda(assets: Path) -> tuple[list[ET.Element], ET.Element, list[ET.Element]]:
    """Assets, the body at the arm's base, actuators."""
    arm = _part(assets / "robot.xml")
    hand = _part(assets / "panda_gripper.xml")
    arm_bodies, hand_bodies = _found(arm, "worldbody"), _found(hand, "worldbody")
    for bodies, armature in ((arm_bodies, "0.5"), (hand_bodies, "0.1")):
        _strip(bodies)
        for body in bodies.iter("body"):
            body.set("gravcomp", "1")
        for joint in bodies.iter("joint"):
            joint.set("damping", "20")
            joint.set("armature", armature)
            joint.set("frictionloss", "0")
    for geom in hand_bodies.iter("geom"):
        if "pad" in geom.get("name", ""):
            geom.set("friction", "3 .1 .001")
    wrist = next(body for body in arm_bodies.iter("body") if body.get("name") == "right_hand")
    wrist.extend(list(hand_bodies))
    base = _found(arm_bodies, "body")
    base.set("pos", _BASE_AT)
    for child in [*base.findall("camera"), *base.findall("inertial")]:
        base.remove(child)
    used = {geom.get("mesh") for geom in base.iter("geom")}
    kept = [
        asset
        for asset in [*_found(arm, "asset"), *_found(hand, "asset")]
        if asset.tag != "mesh" or asset.get("name") in used
    ]
    for asset in kept:
        if asset.tag == "mesh":
            asset.set("file", str(assets / "meshes" / f"{Path(asset.get('file', '')).stem}.stl"))
    return kept, base, _servos()


def _part(path: Path) -> ET.Element:
    return ET.fromstring(path.read_bytes())


def _found(element: ET.Element, tag: str) -> ET.Element:
    child = element.find(tag)
    if child is None:
        raise RuntimeError(f"The Panda's description has no <{tag}>.")
    return child


def _strip(element: ET.Element) -> None:
    """Collision geometry goes, but for the fingertips' pads; of the sites the one between them stays."""
    for child in list(element):
        name = child.get("name", "")
        is_hull = child.tag == "geom" and (name.endswith("_collision") or "_vis" not in child.get("mesh", "_vis"))
        if (is_hull and "pad" not in name) or (child.tag == "site" and name != "grip_site"):
            element.remove(child)
        elif child.tag == "site":
            child.set("group", "4")
        else:
            _strip(child)


def _servos() -> list[ET.Element]:
    servos = [
        ET.Element("position", name=f"servo_{joint}", joint=joint, kp=str(stiff), kv=str(stiff * 0.12))
        for joint, stiff in zip(JOINTS, _STIFFNESS, strict=True)
    ]
    servos += [
        ET.Element("position", name=f"servo_{joint}", joint=joint, kp="800", kv="40", forcerange="-25 25")
        for joint in FINGERS
    ]
    return servos
