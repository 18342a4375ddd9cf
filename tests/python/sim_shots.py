"""Shots by hand, for tests of predicates."""

from __future__ import annotations

from typing import Any

from compass_edge.sim.shot import Shot
from compass_edge.sim.things import Place, Thing

BLOCK = Thing("red_block_1", "block", "red", "block", (0.0, 0.1), (0.0, 0.1))
BUTTON = Thing("red_button_1", "button", "red", "button", (0.1, 0.0), (0.1, 0.0))
MAT = Thing("blue_mat_1", "mat", "blue", "mat", (0.0, -0.1), (0.0, -0.1))
HERE = Place("the left mat", (0.0, 0.1), (0.0, 0.1), 0.003)
THERE = Place("the right mat", (0.0, -0.1), (0.0, -0.1), 0.003)
REST = BLOCK.rest(0.003)


def shot(block: tuple[float, float, float] = (0.0, 0.1, REST), travel: float = 0.0, **fields: Any) -> Shot:
    return Shot(
        **{
            "gripper": (0.0, 0.0, 0.2), "opening": 0.04, "held": None, "touched": frozenset(), "lamp": None,
            "bodies": {BLOCK.name: block}, "travel": {BUTTON.name: travel}, **fields,
        }
    )  # fmt: skip
