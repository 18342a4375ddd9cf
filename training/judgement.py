"""A judgement: what three frames show of a deed, and whether it was done. By what they show alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compass_edge.sim.deed import bare
from compass_edge.sim.shot import Shot
from training.stage import Part, Stage, thing_word


@dataclass(frozen=True, slots=True)
class Judgement:
    start: str
    during: str
    candidate: str
    change: str
    verdict: str


def judge(stage: Stage, part: Part, start: Shot, during: Shot, candidate: Shot, rest: float) -> Judgement:
    """What three frames show of a part, and whether it was done: by what they show alone."""
    first = stage.sight(part, start, rest)
    middle = stage.sight(part, during, rest)
    deed, what = part.deed, bare(part.deed.what)
    if deed.kind == "watch":
        shown = middle.state if middle.state != "dark" else ""
        last = stage.sight(part, candidate, rest, f" after {shown}" if shown and candidate.lamp is None else "")
        done = first.state == "dark" and shown and last.state == "dark"
        change = "on and dark again" if done else "on" if last.state != "dark" else "none"
        return Judgement(first.text, middle.text, last.text, change, "done" if done else "not_done")
    if deed.kind in ("press", "tap"):
        rest_state, act_state = ("up", "down") if deed.kind == "press" else ("free", "touched")
        last = stage.sight(part, candidate, rest)
        done = first.state == rest_state == last.state and middle.state == act_state
        change = "down and up again" if done else "down" if last.state == act_state else "none"
        return Judgement(first.text, middle.text, last.text, change, "done" if done else "not_done")
    if deed.kind == "lift":
        last = stage.sight(part, candidate, rest, middle.goal if middle.state == "up" else "")
        # A step begins where the one before was accepted: what has just been put down may still be gripped there.
        rested, same = first.state in ("down", "gripped"), first.state == "gripped" or first.origin == last.origin
        done = rested and last.state == "down" and middle.state == "up" and same
        change = "up and down again" if done else last.state if last.state != "down" else "none"
        if last.state == "down" and not same:
            change = "moved"
        return Judgement(first.text, middle.text, last.text, change, "done" if done else "not_done")
    assert part.thing is not None
    assert part.origin is not None
    last, subject = stage.sight(part, candidate, rest, before=(during,)), thing_word(part.thing)
    # Of one that there is only one of, it does not matter where it stood: that may have been a mistake of whoever asked.
    from_there = first.origin.startswith(subject)
    right_one = from_there or len(stage.alike(part.thing)) == 1
    moved = right_one and first.goal != subject and last.goal == subject and last.origin != subject
    there = first.goal == subject and not first.origin.startswith(subject)
    if moved:
        goal = bare(part.goal.name) if part.goal is not None else last.text.split("; ")[1].split(":")[0]
        way = f" from {bare(part.origin.name)}" if from_there else ""
        return Judgement(first.text, middle.text, last.text, f"{what}{way} to {goal}", "done")
    change = (
        "already there"
        if there
        else "in the hand"
        if last.state == subject
        else "not released"
        if last.goal == f"{subject} gripped"
        else "none"
    )
    return Judgement(first.text, middle.text, last.text, change, "already_done" if there else "not_done")


def rest_of(part: Part, shots: Sequence[Shot], begin: int) -> float:
    """How high its thing rests during a step that begins there."""
    thing = part.thing
    if part.deed.kind == "lift" and thing is None:
        return min(point[2] for name, point in shots[begin].bodies.items())
    if thing is None or thing.name not in shots[begin].bodies:
        return 0.0
    if shots[begin].held == thing.name:
        return min(shot.bodies[thing.name][2] for shot in shots)
    return shots[begin].bodies[thing.name][2]
