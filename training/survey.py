"""A survey: one frame, and everything that it shows, in the Verifier's words and in any order.

A Verifier learns to find a place by its name from three frames and two places at a time, in a story whose end can be guessed. Here
there is no story, and a frame answers for all of its places or things at once.
"""

from __future__ import annotations

import json
from bisect import bisect_right

from compass_edge.models import Question
from compass_edge.roles.schema import record, words
from compass_edge.sim.deed import Deed, bare
from compass_edge.sim.shot import Shot
from training.films import NO_IMAGE, Dice, Films, Frame, Sample
from training.footage import EVERY, Footage
from training.judgement import rest_of
from training.memory import evidence
from training.stage import Part, Stage

_SCHEMA = record(start=words(1000))
Entry = tuple[str, tuple[int, ...]]  # what is told, and the numbers of the things that it is read off
_MOST = 8  # entries of a survey
_ACTION = 0.6  # of frames that show something being done


def survey(films: Films, dice: Dice, *, text: bool) -> Sample:
    found = surveys(films, dice, text=text)
    return found[dice.integers(len(found))]


def surveys(films: Films, dice: Dice, *, text: bool = False) -> list[Sample]:
    """Of one frame: its places, its things, or both."""
    number, step = films.any_step(dice)
    film, stage = films.films[number], films.stages[number]
    frame = any_frame(films, number, step, dice)
    shot = film.shots[frame]
    lists = {"Where": _places(stage, shot), "What": _things(stage, film, frame)}
    heads = [head for head, entries in lists.items() if len(entries) > 1] or ["Where"]
    shown = [] if text else [(number, films.place[number][frame])]
    return [_listed(head, lists[head], shown, dice) for head in heads]


def _listed(head: str, there: list[Entry], shown: list[Frame], dice: Dice) -> Sample:
    chosen = [there[at] for at in dice.permutation(len(there))[:_MOST]]
    entries = [text for text, _ in chosen]
    names = "; ".join(entry.split(":")[0] for entry in entries)
    question = Question(
        (f"\n# {head}\n{names}\n\nThe current frame:\n", NO_IMAGE, "\nReply with the JSON object now.\n"), _SCHEMA
    )
    reply = json.dumps({"start": "; ".join(entries)})
    seen = {(0, at): numbers for at, (_, numbers) in enumerate(chosen)}
    return Sample(question, shown, reply, case=head, seen=seen)


def any_frame(films: Films, number: int, step: int, dice: Dice) -> int:
    """Of a film, and more often than not one in which the step is being carried out."""
    film, stage = films.films[number], films.stages[number]
    if dice.random() < _ACTION:
        part, begin, end = stage.part(step), films.begin(number, step), film.ends[step]
        shows = evidence(stage, part, film, begin, end, rest_of(part, film.shots, begin))
        filmed = [frame for frame in shows if frame % EVERY == 0 and frame in films.place[number]]
        if filmed:
            return filmed[dice.integers(len(filmed))]
    return film.frames[dice.integers(len(film.frames))]


def _places(stage: Stage, shot: Shot) -> list[Entry]:
    """What stands at each place, and what the hand does. The inside of a box cannot be seen."""
    seen = [place for place in stage.places.values() if place.within is None] if stage.movable else []
    found = [
        (f"{bare(place.name)}: {stage.content(place, shot, stage.movable[0])}", stage.spot(place, shot))
        for place in seen
    ]
    return [*found, (f"hand: {stage.hand(shot)}", stage.grip(shot))]


def _things(stage: Stage, film: Footage, frame: int) -> list[Entry]:
    """The state of everything that can be lifted, pressed, tapped or watched."""
    shot = film.shots[frame]
    done = bisect_right(film.ends, frame)
    begin = film.ends[done - 1] if done else 0
    parts = [part for part in stage.others(film.shots[begin]) if part.deed.kind != "move"]
    if any(thing.kind == "lamp" for thing in stage.things):
        parts.append(Part(Deed("watch", "the lamp")))
    return [
        (stage.sight(part, shot, rest_of(part, film.shots, begin)).text, stage.looked_at(part, shot)[0])
        for part in parts
    ]
