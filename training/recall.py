"""Recall: a list of what stands where, and then each thing asked for, in another order. Words alone, and nothing in them can be guessed.

A plan of the benchmark looks up three places among three hundred words; a decoder that only sees such plans learns to guess. Here every
fifth word is a question to the list. Half of the lists are of words that mean nothing together: what is learned is to look.
"""

from __future__ import annotations

import json

from compass_edge.models import Question
from compass_edge.roles.schema import flag, record, several, whole, words
from compass_edge.sim.tasks.draft import PAINTS
from training.films import Dice, Sample
from training.guidance import listed

_SCHEMA = record(
    objects=several(record(name=words(100), count=whole(0, 99)), 32),
    grounded=flag(),
    plan=several(record(outcome=words(300), times=whole(1, 32)), 32),
)
_KINDS = ("block", "cover", "button", "mat", "box")
_SIDES = ("leftmost", "middle", "rightmost", "front left", "front right", "back left", "back right", "left", "right")
_SLOTS = tuple(f"{side} slot of the {rack} rack" for rack in ("brown", "black") for side in ("left", "middle", "right"))
_ANY = (
    "lamp", "hand", "door", "chair", "shelf", "plate", "basket", "window", "fridge", "stove", "hook", "sink", "pan", "bag", "bin",
    "pocket", "order", "state", "colour", "table", "first", "second", "third", "next", "other", "same", "each", "open", "closed",
    "dark", "free", "empty", "white", "black", "gray", "under", "over", "behind", "through", "two", "three", "four", "twice",
    "once",
)  # fmt: skip
_LEAST, _MOST = 2, 8


def recall(dice: Dice) -> Sample:
    things, places = _meaningless(dice) if dice.random() < 0.5 else _standing(dice)
    found = [{"name": f"{listed(thing)} at {place}", "count": 1} for thing, place in zip(things, places, strict=True)]
    asked = dice.permutation(len(things))
    goal = ("white mat", "one gray box", "other gray box")[dice.integers(3)]
    plan = [f"Move the {things[at]} from the {places[at]} onto the {goal}" for at in asked]
    reply = json.dumps({"objects": found, "grounded": True, "plan": [{"outcome": step, "times": 1} for step in plan]})
    named = ", ".join(f"the {things[at]}" for at in asked)
    question = Question((f"\n# Instruction that the robot was given\nMove {named} onto the {goal}.\n",), _SCHEMA)
    return Sample(question, [], reply, reply.index('"grounded"'), case="recall")


def _standing(dice: Dice) -> tuple[list[str], list[str]]:
    """Things of the benchmark, and places where they could stand."""
    paints = [PAINTS[at] for at in dice.permutation(len(PAINTS))]
    count = int(dice.integers(_LEAST, len(paints) + 1))
    if dice.random() < 0.25:
        return [f"tube with the {paint} cap" for paint in paints[:count]], _some(_SLOTS, count, dice)
    kind = _KINDS[dice.integers(len(_KINDS))]
    if dice.random() < 0.6:  # of one colour: only their sides tell them apart
        places = [f"{side} {paints[-1]} mat" for side in _SIDES]
    else:
        places = [f"{side} {paint} mat" for side in _SIDES for paint in PAINTS]
    return [f"{paint} {kind}" for paint in paints[:count]], _some(places, count, dice)


def _meaningless(dice: Dice) -> tuple[list[str], list[str]]:
    count, several = int(dice.integers(_LEAST, _MOST + 1)), int(dice.integers(1, 4))
    things = _some(_ANY, count, dice)
    return things, [" ".join(_some(_ANY, several, dice)) for _ in range(count)]


def _some(names: list[str] | tuple[str, ...], count: int, dice: Dice) -> list[str]:
    return [names[at] for at in dice.permutation(len(names))[:count]]
