"""Samples: the loop's own questions about filmed episodes, with the replies that the simulator's state makes true.

Every prompt is built by compass_edge.roles and compass_edge.prms, word by word as the loop builds it. What a sample needs of a
film is named, not loaded: a frame is a film and the place of a picture in it.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.loop.plan import Fact, Plan, Step
from compass_edge.models import Image, Question
from compass_edge.roles import orienter, verifier
from compass_edge.sim.deed import Deed, bare
from compass_edge.sim.shot import Shot
from compass_edge.sim.subtasks import BLINKS, outcomes_of, told
from training.footage import EVERY, Footage
from training.stage import Part, Stage, judge, objects, rest_of, thing_word
from training.wording import Wording, unrelated, wordings

MAX_STEPS = 32
_NO_IMAGE = Image("")
Frame = tuple[int, int]  # film, picture
Dice = np.random.Generator


@dataclass(slots=True)
class Sample:
    """A question and its reply; for P a clip and its progress. `given`: how much of the reply is not to be learned."""

    question: Question | None
    frames: list[Frame]
    reply: str = ""
    given: int = 0  # characters
    sentence: str = ""
    progress: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    counts: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # which of them are known
    case: str = ""
    about: tuple[Any, ...] = ()


class Films:
    """Films with their stages, and which of their steps are filmed tick by tick."""

    def __init__(self, films: Sequence[Footage]) -> None:
        self.films = list(films)
        self.stages = [Stage(film.script) for film in films]
        self.place = [{frame: at for at, frame in enumerate(film.frames)} for film in films]
        self.steps: list[tuple[int, int]] = []
        self.by_kind: dict[str, list[tuple[int, int]]] = {}
        for number, film in enumerate(films):
            for step, end in enumerate(film.ends):
                begin = film.ends[step - 1] if step else 0
                first, last = _tick(begin), min(_tick(end) + 2 * EVERY, len(film.shots) - 1) // EVERY * EVERY
                if all(frame in self.place[number] for frame in range(first, last + 1, EVERY)):
                    self.steps.append((number, step))
                    kind = self.stages[number].deeds[step].kind
                    self.by_kind.setdefault(kind, []).append((number, step))

    def begin(self, number: int, step: int) -> int:
        return self.films[number].ends[step - 1] if step else 0

    def nearest(self, number: int, frame: int) -> int:
        """The picture at that frame, or the next one before it."""
        return max(bisect_left(self.films[number].frames, frame + 1) - 1, 0)

    def ticks(self, number: int, first: int, last: int) -> list[int]:
        """Filmed ticks from the first frame to the last."""
        return [frame for frame in range(_tick(first), last + 1, EVERY) if frame in self.place[number]]

    def any_step(self, dice: Dice) -> tuple[int, int]:
        """Kinds alike often, but for moves, of which there are most kinds."""
        kinds = [kind for kind in self.by_kind if kind != "move"] + ["move"] * 3
        steps = self.by_kind[kinds[dice.integers(len(kinds))]]
        return steps[dice.integers(len(steps))]


def _tick(frame: int) -> int:
    """The first tick that is not before the frame."""
    return -(-frame // EVERY) * EVERY


# -- memory --------------------------------------------------------------------------------------------------------


def fact_of(stage: Stage, part: Part, film: Footage, begin: int, end: int) -> str:
    """What V wrote when the step was accepted."""
    rest = rest_of(part, film.shots, begin)
    middle = evidence(stage, part, film, begin, end, rest)
    during = film.shots[middle[len(middle) // 2]] if middle else film.shots[(begin + end) // 2]
    return judge(stage, part, film.shots[begin], during, film.shots[end], rest).candidate


def evidence(stage: Stage, part: Part, film: Footage, begin: int, end: int, rest: float) -> list[int]:
    """The frames that show the step being carried out."""
    wanted = {"lift": ("up",), "press": ("down",), "tap": ("touched",)}.get(part.deed.kind)
    found = []
    for frame in range(begin, end):
        shot = film.shots[frame]
        if wanted is None:
            shows = shot.lamp is not None if part.deed.kind == "watch" else shot.held is not None
        else:
            shows = stage.sight(part, shot, rest).state in wanted
        if shows:
            found.append(frame)
    return found


def imagined_fact(stage: Stage, deed: Deed, part: Part, seen: str, shot: Shot) -> str:
    """The same for a step that nobody filmed: as it would look."""
    what = bare(deed.what)
    match deed.kind:
        case "move":
            goal = bare(deed.goal)
            word = thing_word(part.thing) if part.thing is not None else what
            return f"{bare(deed.origin)}: empty; {goal}: {word}; hand: open, over {goal}"
        case "lift":
            place = stage.place_of(part.thing, shot) if part.thing is not None else None
            where = f" at {bare(place.name)}" if place is not None else ""
            return f"{what}: down{where}{seen}; hand: over it"
        case "press":
            return f"{what}: up; hand: over it"
        case "tap":
            return f"{what}: free; hand: over it"
        case "watch":
            return f"lamp: dark{seen}"


# -- Orienter ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Task:
    """An instruction for a table, the plan it asks for, and each step's deed as it is planned and as it is told."""

    wording: Wording
    planned: list[Deed]
    told: list[Deed]


def task_of(stage: Stage, wording: Wording) -> Task:
    name, count = stage.script.task, len(stage.script.steps)
    if name == "S5" and len(wording.picks) == count:
        presses = stage.plan[1:]
        return Task(wording, stage.plan, [stage.plan[0], *presses[:BLINKS]])
    planned = [stage.plan[at] for at in wording.picks]
    return Task(wording, planned, [told(name, stage.deeds, at) for at in wording.picks])


def plan_of(task: Task) -> Plan:
    steps = [
        Step(number, outcome, deed.criterion)
        for number, (outcome, deed) in enumerate(zip(outcomes_of(task.planned), task.planned, strict=True), start=1)
    ]
    return Plan(tuple(steps), issued=len(steps))


def _step_fields(deed: Deed) -> dict[str, Any]:
    made = deed.subtask()
    return {
        "subtask": made.sentence,
        "before": made.before,
        "tau": made.tau,
        "after": made.after,
        "completion": made.completion,
    }


def first_look(films: Films, dice: Dice, *, text: bool) -> Sample:
    number = int(dice.integers(len(films.films)))
    film, stage = films.films[number], films.stages[number]
    found = [{"name": name, "count": count} for name, count in objects(stage, film.shots[0])]
    lost = dice.random() < 0.12
    if lost:
        instruction = unrelated(dice)
        if dice.random() < 0.35:  # of our world, and not on this table
            other = films.films[int(dice.integers(len(films.films)))].script
            if _missing(other.instruction, stage):
                instruction = other.instruction
        empty = {"subtask": "", "before": "", "tau": "", "after": "", "completion": "lasting"}
        values: dict[str, Any] = {"objects": found, "grounded": False, "plan": [], **empty}
        about: tuple[Any, ...] = (number, [])
    else:
        task = task_of(stage, wordings(film.script, dice))
        instruction = task.wording.text
        entries = [{"outcome": step.outcome, "criterion": step.criterion, "times": 1} for step in plan_of(task).steps]
        values = {"objects": found, "grounded": True, "plan": entries, **_step_fields(task.told[0])}
        about = (number, [entry["outcome"] for entry in entries])
    question = orienter.first(instruction, _NO_IMAGE, tau=True, max_steps=MAX_STEPS)
    reply = json.dumps(values)
    given = reply.index('"grounded"') if text else 0
    return Sample(
        question, [] if text else [(number, 0)], reply, given, case="lost" if lost else film.script.task, about=about
    )


def _missing(instruction: str, stage: Stage) -> bool:
    """It names a coloured thing that is not there."""
    words = instruction.replace(",", "").replace(".", "").split()
    there = {(thing.colour, thing.kind) for thing in stage.things} | {
        (thing.colour, f"{thing.kind}s") for thing in stage.things
    }
    kinds = {"block", "blocks", "button", "mat", "cover", "covers"}
    return any(after in kinds and (word, after) not in there for word, after in pairwise(words)
               if word in {"red", "green", "blue", "yellow", "purple", "orange"})  # fmt: skip


def _remembered(films: Films, number: int, task: Task, count: int) -> tuple[Fact, ...]:
    film, stage = films.films[number], films.stages[number]
    facts = []
    for at in range(count):
        pick = task.wording.picks[min(at, len(task.wording.picks) - 1)]
        part = replace(stage.part(pick), deed=task.told[at])
        real = task.wording.picks == tuple(range(len(film.ends)))
        if real and pick < len(film.ends):
            text = fact_of(stage, part, film, films.begin(number, pick), film.ends[pick])
        else:
            seen = ""
            if part.deed.kind == "lift" and part.thing is not None:
                seen = stage.beneath(part.thing, film.shots[films.begin(number, pick)])
            elif part.deed.kind == "watch":
                seen = f" after {film.script.steps[pick].act.colours[-1]}"  # type: ignore[attr-defined]
            text = imagined_fact(stage, part.deed, part, seen, film.shots[films.begin(number, pick)])
        facts.append(Fact(at + 1, text))
    return tuple(facts)


def next_step(films: Films, dice: Dice, *, text: bool) -> Sample:
    number = int(dice.integers(len(films.films)))
    film, stage = films.films[number], films.stages[number]
    while True:
        task = task_of(stage, wordings(film.script, dice))
        if len(task.planned) > 1:
            break
    plan, done = plan_of(task), int(dice.integers(1, len(task.planned)))
    memory = _remembered(films, number, task, done)
    frames: list[Frame] = []
    if not text:
        pick = task.wording.picks[min(done, len(task.wording.picks)) - 1]
        frames = [(number, films.nearest(number, film.ends[pick] + int(dice.integers(0, 5))))]
    flagged = replace(plan, steps=tuple(replace(step, satisfied=at < done) for at, step in enumerate(plan.steps)))
    question = orienter.next_step(task.wording.text, flagged, memory, _NO_IMAGE, tau=True, max_steps=MAX_STEPS)
    reply = json.dumps({"edits": [], **_step_fields(task.told[done])})
    return Sample(question, frames, reply, case=film.script.task)


def review(films: Films, dice: Dice, *, text: bool) -> Sample:
    number = int(dice.integers(len(films.films)))
    film, stage = films.films[number], films.stages[number]
    task = task_of(stage, wordings(film.script, dice))
    plan = plan_of(task)
    missing: list[dict[str, Any]] = []
    kept = plan.steps
    if len(kept) > 1 and dice.random() < 0.12 and "(" not in kept[-1].outcome:
        missing = [{"outcome": kept[-1].outcome, "criterion": kept[-1].criterion, "times": 1}]
        kept = kept[:-1]
    memory = _remembered(films, number, task, len(kept))
    flagged = replace(plan, steps=tuple(replace(step, satisfied=True) for step in kept))
    question = orienter.review(task.wording.text, flagged, memory, _NO_IMAGE, max_steps=MAX_STEPS)
    frames = [] if text else [(number, len(film.frames) - 1)]
    return Sample(question, frames, json.dumps({"omitted": missing}), case=film.script.task)


# -- Verifier ------------------------------------------------------------------------------------------------------


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
    """Finished, not yet, something else, or there all along; None if a frame of it was not filmed."""
    number, step = films.any_step(dice)
    film, stage = films.films[number], films.stages[number]
    part, begin, end = stage.part(step), films.begin(number, step), film.ends[step]
    last = len(film.shots) - 1
    following = min(film.ends[step + 1] if step + 1 < len(film.ends) else len(film.shots), len(film.shots)) - 1
    start = _tick(begin) + EVERY * int(dice.integers(0, 3))
    start = start if start < end else _tick(begin)
    rest = rest_of(part, film.shots, begin)
    shows = [frame for frame in evidence(stage, part, film, start, end, rest) if frame % EVERY == 0]
    late = EVERY * int(dice.integers(0, 4))
    candidate = min(_tick(end) + late, following) // EVERY * EVERY
    case = ("finished", "early", "other", "before")[int(dice.choice(4, p=(0.46, 0.16, 0.26, 0.12)))]
    if case == "early":
        candidate = start + EVERY * int(dice.integers(1, max((end - start) // EVERY, 2)))
        if dice.random() < 0.4:  # nearly done
            candidate = max(_tick(end) - EVERY * int(dice.integers(1, 4)), start + EVERY)
    elif case == "other":
        found = _another(stage, part, film.shots[begin], dice)
        if found is None:
            return None
        part, rest = found, rest_of(found, film.shots, begin)
        if dice.random() < 0.25:
            candidate = min(candidate + EVERY * int(dice.integers(1, 8)), last) // EVERY * EVERY
    elif case == "before":
        start = min(_tick(end) + late, last)
        candidate = min(start + EVERY * int(dice.integers(1, 12)), last) // EVERY * EVERY
    if shows and dice.random() < (0.85 if case in ("finished", "other") else 0.5):
        during = shows[dice.integers(len(shows))]
    else:
        during = int(dice.integers(start, max(candidate, start + 1)))
    during = min(max(during // EVERY * EVERY, start), candidate)
    frames = (start, during, candidate)
    if all(frame in films.place[number] for frame in frames):
        return Moments(number, step, part, rest, case, frames)
    return None


def _another(stage: Stage, part: Part, shot: Shot, dice: Dice) -> Part | None:
    """Something else about the same thing, something alike, or anything that the table allows."""
    others = stage.others(shot)
    same = [one for one in others if one.thing is not None and one.thing == part.thing and one.deed != part.deed]
    alike = [one for one in others if one.deed.kind == part.deed.kind and one.deed != part.deed]
    pool = (same, alike, others)[dice.integers(3)] or others
    return pool[dice.integers(len(pool))] if pool else None


def verify(films: Films, dice: Dice, *, text: bool) -> Sample:
    """Whether it is done is judged by what the three frames show."""
    found = None
    while found is None:
        found = _moments(films, dice)
    film, stage, part = films.films[found.number], films.stages[found.number], found.part
    start, during, candidate = (film.shots[frame] for frame in found.frames)
    judged = judge(stage, part, start, during, candidate, found.rest)
    memory: tuple[Fact, ...] = ()
    if found.step and dice.random() < 0.75:
        first = max(0, found.step - int(dice.integers(1, 9)))
        memory = tuple(
            Fact(at + 1, fact_of(stage, stage.part(at), film, films.begin(found.number, at), film.ends[at]))
            for at in range(first, found.step)
        )
    question = verifier.question(part.deed.subtask(), memory, _NO_IMAGE, _NO_IMAGE, _NO_IMAGE, tau=True)
    before, after = (
        _counted(judged.start, judged.candidate, part) if _moves_one_of_several(stage, part) else (None, None)
    )
    reply = json.dumps({
        "start": judged.start, "during": judged.during, "candidate": judged.candidate, "change": judged.change,
        "count_start": before, "count_candidate": after, "verdict": judged.verdict,
    })  # fmt: skip
    given = reply.index('"change"') if text else 0
    frames = [] if text else [(found.number, films.place[found.number][frame]) for frame in found.frames]
    return Sample(question, frames, reply, given, case=found.case, about=(part.deed.kind, judged.verdict))


def _moves_one_of_several(stage: Stage, part: Part) -> bool:
    thing = part.thing
    if part.deed.kind != "move" or thing is None:
        return False
    return sum((one.kind, one.colour) == (thing.kind, thing.colour) for one in stage.movable) > 1


def _counted(start: str, candidate: str, part: Part) -> tuple[int, int]:
    """How many of the things that look alike are where the step puts them."""
    assert part.thing is not None
    word = thing_word(part.thing)
    before, after = (int(text.split("; ")[1].endswith(f": {word}")) for text in (start, candidate))
    return before, after


# -- progress ------------------------------------------------------------------------------------------------------


def clip(films: Films, dice: Dice, *, most: int = 40) -> Sample:
    """The frames since a step began, as the loop hands them to P, under the step's sentence or another one."""
    if dice.random() < 0.1:
        return _episode_clip(films, dice, most)
    if dice.random() < 0.6:  # more clips of fewer frames: the frames of one clip teach much the same
        most = 14
    number, step = films.any_step(dice)
    film, stage = films.films[number], films.stages[number]
    begin, end = films.begin(number, step), film.ends[step]
    following = film.ends[step + 1] if step + 1 < len(film.ends) else len(film.shots)
    start = _tick(begin) + EVERY * int(dice.integers(0, 3))
    start = start if start < end else _tick(begin)
    last = min(_tick(end) + EVERY * int(dice.integers(0, 6)), following - 1, len(film.shots) - 1)
    ticks = films.ticks(number, start, last)
    if len(ticks) > most:
        if dice.random() < 0.5:
            ticks = [*ticks[: -1 : -(-len(ticks) // most)], ticks[-1]]
        else:  # any of them, the first and the last always
            kept = {0, len(ticks) - 1, *dice.permutation(len(ticks))[: most - 2].tolist()}
            ticks = [ticks[at] for at in sorted(kept)]
    truth = np.array([(min(frame, end) - start) / max(end - start, 1) for frame in ticks], np.float32)
    known = np.ones(len(ticks), np.float32)
    part, case = stage.part(step), "right"
    sentence = part.deed.subtask().sentence
    if dice.random() < 0.3:
        sentence = film.script.steps[step].sentence  # with all its context
    if dice.random() < 0.28:
        wrong = _wrong(stage, part, film, begin, dice)
        if wrong is not None:
            part, diverges, case = wrong
            sentence = part.deed.subtask().sentence
            known = np.array([float(frame >= diverges) for frame in ticks], np.float32)
            rest = rest_of(part, film.shots, begin)
            shows = evidence(stage, part, film, begin, ticks[-1], rest)
            judged = [judge(stage, part, film.shots[start], film.shots[shows[len(shows) // 2] if shows else start], film.shots[frame], rest)
                      for frame in (ticks[-1],)]  # fmt: skip
            if judged[0].verdict != "not_done":  # it is true of the clip after all
                known[:] = 0.0
                known[0] = 1.0
            truth = np.zeros(len(ticks), np.float32)
            known[0] = 1.0
    return Sample(None, [(number, films.place[number][frame]) for frame in ticks], sentence=sentence, progress=truth, counts=known,
                  case=case, about=(part.deed.kind, [(frame - start) // EVERY for frame in ticks]))  # fmt: skip


def _wrong(stage: Stage, part: Part, film: Footage, begin: int, dice: Dice) -> tuple[Part, int, str] | None:
    """Another deed, and the frame from which the film can no longer be doing it."""
    others = [
        one for one in stage.others(film.shots[begin]) if one.deed.subtask().sentence != part.deed.subtask().sentence
    ]
    same = [one for one in others if one.thing is not None and one.thing == part.thing]
    pool = same if same and dice.random() < 0.5 else others
    if not pool:
        return None
    other = pool[dice.integers(len(pool))]
    end = next(one for one in film.ends if one > begin)
    if other.thing is not None and other.thing == part.thing:
        if other.deed.kind == part.deed.kind == "lift":
            return None
        return other, end, "same thing"
    rest = rest_of(part, film.shots, begin)
    shows = evidence(stage, part, film, begin, end, rest)
    return other, shows[0] if shows else end, "other thing"


def _episode_clip(films: Films, dice: Dice, most: int) -> Sample:
    """A whole episode under its instruction, as RoboMeter is trained: what a progress model knows without context."""
    number = int(dice.integers(len(films.films)))
    film = films.films[number]
    last = int(dice.integers(len(film.frames) // 2, len(film.frames)))
    sparse = [at for at, frame in enumerate(film.frames[: last + 1]) if frame % 16 == 0]
    ends = np.array(film.ends)
    if len(sparse) > most:
        sparse = sparse[:: -(-len(sparse) // most)]
    if not sparse:
        sparse = [0]
    truth = []
    for at in sparse:
        frame = film.frames[at]
        done = int(np.searchsorted(ends, frame, side="right"))
        begin = 0 if done == 0 else ends[done - 1]
        local = (frame - begin) / (ends[done] - begin) if done < len(ends) else 0.0
        truth.append((done + local) / len(ends))
    instruction = film.script.instruction
    return Sample(None, [(number, at) for at in sparse], sentence=instruction, progress=np.array(truth, np.float32),
                  counts=np.ones(len(sparse), np.float32), case="episode", about=("episode", list(range(len(sparse)))))  # fmt: skip


SAMPLERS: dict[str, Callable[..., Sample]] = {
    "first": first_look,
    "next": next_step,
    "review": review,
    "verify": verify,
}
