"""Recall: a list of what stands where, and steps that have to look it up. Words alone, and hardly anything in them can be guessed.

A plan of the benchmark looks up three places among three hundred words; a decoder that only sees such plans learns to guess. Here every
step is a question to the list: it teaches in minutes to find a thing by its name and to copy what stands beside it.
"""

from __future__ import annotations

import json

from compass_edge.roles import orienter
from compass_edge.sim.deed import Deed, bare
from compass_edge.sim.tasks.draft import PAINTS
from training.films import NO_IMAGE, Dice, Sample
from training.orienter_samples import MAX_STEPS, Task, plan_of, step_fields
from training.wording import Wording

_ROW = ("leftmost", "middle", "rightmost")
_CORNERS = ("front left", "front right", "back left", "back right")
_ASKED = (
    "Move {things} {into} {goal}, in this order.",
    "One after the other, move {things} {into} {goal}.",
    "Put {things} {into} {goal}.",
)


def recall(dice: Dice) -> Sample:
    things, places, goal, into = _table(dice)
    count = len(things)
    standing = list(zip(things, places, strict=True))
    found = [{"name": f"{_word(thing)} at {bare(place)}", "count": 1} for thing, place in standing]
    asked = [standing[at] for at in dice.permutation(count)[: dice.integers(1, count + 1)]]
    if dice.random() < 0.5:  # some of them twice: there, and back to where they came from
        deeds = [
            one
            for thing, place in asked
            for one in (Deed("move", thing, place, goal, into), Deed("move", thing, goal, place, into))
        ]
        text = "Move {things} {into} {goal} and back to where it was, one after the other."
    else:
        deeds = [Deed("move", thing, place, goal, into) for thing, place in asked]
        text = _ASKED[dice.integers(len(_ASKED))]
    instruction = text.format(things=", ".join(thing for thing, _ in asked), goal=goal, into=into)
    task = Task(Wording(instruction, tuple(range(len(deeds)))), deeds, deeds)
    entries = [{"outcome": step.outcome, "criterion": step.criterion, "times": 1} for step in plan_of(task).steps]
    listed = [*found, {"name": bare(goal), "count": 1}]
    reply = json.dumps({"objects": listed, "grounded": True, "plan": entries, **step_fields(deeds[0], tau=True)})
    question = orienter.first(instruction, NO_IMAGE, tau=True, max_steps=MAX_STEPS)
    return Sample(question, [], reply, reply.index('"grounded"'), case="recall")


def _table(dice: Dice) -> tuple[list[str], list[str], str, str]:
    """Things, where they stand, where they are to go, and in which way."""
    paints = [PAINTS[at] for at in dice.permutation(len(PAINTS))]
    luck = dice.random()
    if luck < 0.3:
        slots = [
            f"the {side} slot of the {rack} rack" for rack in ("brown", "black") for side in ("left", "middle", "right")
        ]
        goal, *places = (slots[at] for at in dice.permutation(len(slots)))
        count = int(dice.integers(2, 5))
        return [f"the tube with the {paint} cap" for paint in paints[:count]], places[:count], goal, "into"
    if luck < 0.8:
        row = luck < 0.65
        places = [f"the {side} {paints[5]} mat" for side in (_ROW if row else _CORNERS)]
        count = int(dice.integers(2, 4 if row else 5))
    else:
        places, count = [f"the {PAINTS[at]} mat" for at in dice.permutation(len(PAINTS))[:4]], int(dice.integers(2, 5))
    spots = [places[at] for at in dice.permutation(len(places))]
    others = [f"the {paint} mat" for paint in (*PAINTS, "white") if f"the {paint} mat" not in spots]
    goal = spots[count] if count < len(spots) and dice.random() < 0.5 else others[dice.integers(len(others))]
    return [f"the {paint} block" for paint in paints[:count]], spots[:count], goal, "onto"


def _word(thing: str) -> str:
    """As a list names it."""
    words = bare(thing).split()
    return f"{words[-2]} tube" if "tube" in words else bare(thing)
