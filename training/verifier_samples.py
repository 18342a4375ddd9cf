"""What the Verifier is asked and should say: three frames of a film, and a deed that they show or do not show."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from compass_edge.loop.plan import Fact
from compass_edge.roles import verifier
from compass_edge.sim.deed import bare
from compass_edge.sim.shot import Shot
from training.films import NO_IMAGE, TAU, Dice, Films, Sample, tick_at
from training.footage import EVERY
from training.judgement import judge, rest_of
from training.memory import evidence, fact_of
from training.pointing import pointed
from training.stage import Part, Stage, thing_word

# What three frames show of a step that is asked about, and how often. `soon`: hardly anything has happened yet, and nothing may be
# made up; `misplaced`: the Orienter was wrong about where the thing stands.
_CASES = {
    "finished": 0.31,
    "early": 0.11,
    "other": 0.17,
    "before": 0.05,
    "any": 0.22,
    "soon": 0.08,
    "misplaced": 0.06,
}


@dataclass(frozen=True, slots=True)
class Moments:
    """Three frames of a film and the deed that V is asked about, which need not be what the film shows."""

    number: int
    step: int
    part: Part
    rest: float
    case: str
    frames: tuple[int, int, int]


def _moments(films: Films, dice: Dice) -> Moments | None:
    """Finished, not yet, something else, there all along, or any three moments; None if a frame of it was not filmed.

    Of any three moments nothing can be told but by looking at them: in all others the end of the story helps to guess.
    """
    number, step = films.any_step(dice)
    film, stage = films.films[number], films.stages[number]
    part, begin, end = stage.part(step), films.begin(number, step), film.ends[step]
    last = len(film.shots) - 1
    following = min(film.ends[step + 1] if step + 1 < len(film.ends) else len(film.shots), len(film.shots)) - 1
    start = max(tick_at(begin) + EVERY * int(dice.integers(-2, 5)), 0)
    start = start if start < end else tick_at(begin)
    rest = rest_of(part, film.shots, begin)
    shows = [frame for frame in evidence(stage, part, film, start, end, rest) if frame % EVERY == 0]
    late = EVERY * max(int(dice.integers(-2, 4)), 0)
    candidate = min(tick_at(end) + late, following) // EVERY * EVERY
    case = list(_CASES)[int(dice.choice(len(_CASES), p=list(_CASES.values())))]
    if case == "early":
        candidate = start + EVERY * int(dice.integers(1, max((end - start) // EVERY, 2)))
        if dice.random() < 0.4:  # nearly done
            candidate = max(tick_at(end) - EVERY * int(dice.integers(1, 4)), start + EVERY)
    elif case == "other":
        found = _another(stage, part, film.shots[begin], dice)
        if found is None:
            return None
        part, rest = found, rest_of(found, film.shots, begin)
        if dice.random() < 0.25:
            candidate = min(candidate + EVERY * int(dice.integers(1, 8)), last) // EVERY * EVERY
    elif case == "soon":
        candidate = min(start + EVERY * int(dice.integers(1, 5)), last // EVERY * EVERY)
    elif case == "misplaced":
        part = _misplaced(stage, part, dice)
    elif case == "before":
        start = min(tick_at(end) + late, last)
        candidate = min(start + EVERY * int(dice.integers(1, 12)), last) // EVERY * EVERY
    if case == "any":
        return _any_moments(films, dice, number, step)
    # A middle frame that always shows it when it was done would tell the end of the story. What leaves a trace needs no such frame.
    traced = part.deed.kind == "move" and case == "finished"
    if shows and dice.random() < (0.85 if case in ("finished", "other", "misplaced") and not traced else 0.4):
        during = shows[dice.integers(len(shows))]
    else:
        during = int(dice.integers(start, max(candidate, start + 1)))
    during = min(max(during // EVERY * EVERY, start), candidate)
    frames = (start, during, candidate)
    if all(frame in films.place[number] for frame in frames):
        return Moments(number, step, part, rest, case, frames)
    return None


def _any_moments(films: Films, dice: Dice, number: int, step: int) -> Moments:
    film, stage = films.films[number], films.stages[number]
    chosen = [int(one) for one in dice.choice(film.frames, 3)]
    start, during, candidate = chosen if dice.random() < 0.5 else sorted(chosen)  # a story or none
    others = stage.others(film.shots[start])
    part = others[dice.integers(len(others))] if others and dice.random() < 0.5 else stage.part(step)
    return Moments(number, step, part, rest_of(part, film.shots, start), "any", (start, during, candidate))


def _another(stage: Stage, part: Part, shot: Shot, dice: Dice) -> Part | None:
    """Another step of the script, something else about the same thing, something alike, or anything that the table allows."""
    others = [one for one in stage.others(shot) if one.deed != part.deed]
    same = [one for one in others if one.thing is not None and one.thing == part.thing]
    alike = [one for one in others if one.deed.kind == part.deed.kind]
    pool = (stage.besides(part), same, alike, others)[dice.integers(4)] or others
    return pool[dice.integers(len(pool))] if pool else None


def _misplaced(stage: Stage, part: Part, dice: Dice) -> Part:
    """The same move, from a place where the thing does not stand."""
    if part.deed.kind != "move" or part.origin is None or part.thing is None:
        return part
    known = (part.deed.origin, part.deed.goal)
    word = thing_word(part.thing)
    places = [
        one
        for one in stage.goals(part.thing)
        if one.within is None and one.name not in known and bare(one.name) != word
    ]
    if not places:
        return part
    origin = places[dice.integers(len(places))]
    return replace(part, deed=replace(part.deed, origin=origin.name), origin=origin)


def verify(films: Films, dice: Dice, *, text: bool) -> Sample:
    return _asked(films, dice, _some_moments(films, dice), text=text)


def verify_twice(films: Films, dice: Dice) -> list[Sample]:
    """Two deeds and the same three frames: what differs between the replies is what was asked for."""
    found = _some_moments(films, dice)
    film, stage = films.films[found.number], films.stages[found.number]
    asked = [_asked(films, dice, found, text=False)]
    other = _another(stage, found.part, film.shots[found.frames[0]], dice)
    if other is not None:
        rest = rest_of(other, film.shots, found.frames[0])
        asked.append(_asked(films, dice, replace(found, part=other, rest=rest, case="other"), text=False))
    return asked


def _some_moments(films: Films, dice: Dice) -> Moments:
    found = None
    while found is None:
        found = _moments(films, dice)
    return found


def _asked(films: Films, dice: Dice, found: Moments, *, text: bool) -> Sample:
    """Whether it is done is judged by what the three frames show."""
    film, stage, part = films.films[found.number], films.stages[found.number], found.part
    start, during, candidate = (film.shots[frame] for frame in found.frames)
    judged = judge(stage, part, start, during, candidate, found.rest)
    memory: tuple[Fact, ...] = ()
    if found.step and dice.random() < 0.75:
        few = dice.random() < 0.35  # all that was verified is what the loop tells
        first = max(0, found.step - int(dice.integers(1, 4))) if few else 0
        brief = dice.random() < 0.25  # as another Verifier may have put it: what was expected has come
        memory = tuple(
            Fact(
                at + 1,
                stage.part(at).deed.subtask().after
                if brief
                else fact_of(stage, stage.part(at), film, films.begin(found.number, at), film.ends[at]),
            )
            for at in range(first, found.step)
        )
    tau = bool(dice.random() < TAU)
    question = verifier.question(part.deed.subtask(), memory, NO_IMAGE, NO_IMAGE, NO_IMAGE, tau=tau)
    before, after = (
        _counted(judged.start, judged.candidate, part) if _moves_one_of_several(stage, part) else (None, None)
    )
    reply = json.dumps({
        "start": judged.start, "during": judged.during, "candidate": judged.candidate, "change": judged.change,
        "count_start": before, "count_candidate": after, "verdict": judged.verdict,
    })  # fmt: skip
    given = reply.index('"change"') if text else 0
    frames = [] if text else [(found.number, films.place[found.number][frame]) for frame in found.frames]
    about = (part.deed.kind, judged.verdict)
    seen = {
        (frame, entry): numbers
        for frame, shot in enumerate((start, during, candidate))
        for entry, numbers in enumerate(stage.looked_at(part, shot))
    }
    return Sample(question, frames, reply, given, case=found.case, about=about, pointed=pointed(stage, part), seen=seen)


def _moves_one_of_several(stage: Stage, part: Part) -> bool:
    thing = part.thing
    if part.deed.kind != "move" or thing is None:
        return False
    return len(stage.alike(thing)) > 1


def _counted(start: str, candidate: str, part: Part) -> tuple[int, int]:
    """How many of the things that look alike are where the step puts them."""
    assert part.thing is not None
    word = thing_word(part.thing)
    before, after = (int(text.split("; ")[1].endswith(f": {word}")) for text in (start, candidate))
    return before, after
