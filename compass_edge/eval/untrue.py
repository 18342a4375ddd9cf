"""Untrue sentences: steps that make sense in a scene and did not happen in a stretch of it. Truth is asked of the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compass_edge.eval.performed import Performed
from compass_edge.eval.wording import Wording, in_full, subtasks_of
from compass_edge.loop.plan import Subtask
from compass_edge.sim.acts import Act, Carry, Lift, Press, Tap
from compass_edge.sim.subtasks import deeds
from compass_edge.sim.things import Place, Thing

_NOUNS = {"block": "block", "cover": "cover", "button": "button", "mat": "mat"}


def other_steps(performed: Performed, step: int, first: int, last: int, wording: Wording) -> list[Subtask]:
    """Other steps of the same episode, each way of putting them once."""
    own = subtasks_of(performed.episode, wording)[step].sentence
    others = {
        subtask.sentence: subtask
        for at, subtask in enumerate(in_full(performed.episode, wording))
        if at != step and not performed.happened(performed.act(at), first, last)
    }
    return [subtask for sentence, subtask in others.items() if sentence != own]


def other_targets(performed: Performed, step: int, first: int, last: int) -> list[Subtask]:
    """The same motion with another goal: the block onto another mat, another button, another mat to tap."""
    deed, act = deeds(performed.episode)[step], performed.act(step)
    found = []
    if isinstance(act, Carry):
        for place in performed.script.places:
            apart = place.at != act.place.at  # a tower stands on a mat: both are where it is put
            fits = _kind(place) == _kind(act.place) and place.name not in (deed.origin, deed.goal, deed.what)
            if apart and fits and not performed.happened(replace(act, place=place), first, last):
                found.append(replace(deed, goal=place.name).subtask())
    else:
        for thing, other in _others(performed, act):
            if not performed.happened(other, first, last):
                found.append(replace(deed, what=_name(thing)).subtask())
    return found


def _kind(place: Place) -> tuple[bool, bool]:
    return place.within is not None, "slot" in place.name


def _others(performed: Performed, act: Act) -> Iterator[tuple[Thing, Act]]:
    """Things that one name tells apart from all others, and the act done with each."""
    things = performed.script.things
    looks = [(thing.kind, thing.colour) for thing in things]
    for thing, look in zip(things, looks, strict=True):
        if looks.count(look) > 1 or thing.kind not in _NOUNS:
            continue
        match act:
            case Press(button) if thing.kind == "button" and thing != button:
                yield thing, Press(thing)
            case Tap(mat) if thing.kind == "mat" and thing != mat:
                yield thing, Tap(thing)
            case Lift(lifted, place) if thing.kind == lifted.kind and thing.colour != lifted.colour:
                yield thing, Lift(thing, Place(place.name, thing.at, thing.drawn_at, thing.base))


def _name(thing: Thing) -> str:
    return f"the {thing.colour} {_NOUNS[thing.kind]}"
