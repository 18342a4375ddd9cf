"""Drafts: tables that nobody has filmed, as their scripts describe them, with an instruction and the plan it asks for.

Copying from a list ("the green block stands on the rightmost mat: so it is moved from there") is learned from words alone, and from
many tables: films are a few hundred, drafts as many as there are seeds.
"""

from __future__ import annotations

import numpy as np

from compass_edge.sim.catalogue import TASKS
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot
from compass_edge.sim.things import MOVABLE
from training.films import Dice, Films
from training.footage import Footage, training_script
from training.paint import shuffled, told_in

# By kind of sample the tasks in which something has to be looked up: places and counts of a plan, what to do next in what was seen.
DRAFTED = {"first": ("S3", "S3", "S7", "Q1", "Q2", "Q5", "Q6", "R2", "R3"), "next": ("S8", "S8", "S7", "S7", "S4")}
_SHARE = 0.65
_FIRST_SEED, _LAST_SEED = 1_000_000, 9_000_000
_NOTHING = np.zeros((1, 0, 0), np.uint8)


def drafts(dice: Dice, count: int, looked_up: tuple[str, ...]) -> Films:
    """Two thirds of them of tasks in which something has to be looked up."""
    return Films([_draft(dice, looked_up) for _ in range(count)])


def _draft(dice: Dice, looked_up: tuple[str, ...]) -> Footage:
    tasks = looked_up if dice.random() < _SHARE else tuple(TASKS)
    script = training_script(tasks[dice.integers(len(tasks))], int(dice.integers(_FIRST_SEED, _LAST_SEED)))
    return draft_of(told_in(shuffled(dice), script))


def draft_of(script: Script) -> Footage:
    """Its first frame, without a picture."""
    bodies = {thing.name: (*thing.at, thing.rest(thing.base)) for thing in script.things if thing.kind in MOVABLE}
    buttons = {thing.name: 0.0 for thing in script.things if thing.kind == "button"}
    shot = Shot((0.0, 0.0, 0.3), 0.04, None, bodies, frozenset(), buttons, None)
    return Footage(script, [shot], [], [0], _NOTHING, _NOTHING, _NOTHING)
