"""What the Orienter is asked and should say: the first look, the next step, the review."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from compass_edge.loop.plan import Fact, Plan, Step
from compass_edge.roles import orienter
from compass_edge.sim.deed import Deed
from compass_edge.sim.shot import Shot
from compass_edge.sim.subtasks import BLINKS, outcomes_of, told
from training.drafts import DRAFTED, drafts
from training.films import NO_IMAGE, TAU, Dice, Films, Frame, Sample
from training.memory import fact_of, imagined_fact
from training.stage import Stage, objects
from training.wording import Wording, unrelated, wordings

MAX_STEPS = 32
_LOST = 0.14  # of first looks at what an instruction does not fit
_OURS = 0.6  # of these that are asked for something of our world
_LOOKED_UP = 0.6  # of next steps, where there are such, that have to be looked up in the memory
_UNTOLD = 0.6  # of next steps that are asked for with a picture that cannot tell


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


def step_fields(deed: Deed, *, tau: bool) -> dict[str, Any]:
    made = deed.subtask()
    expected = {"tau": made.tau} if tau else {}
    return {
        "subtask": made.sentence,
        "before": made.before,
        **expected,
        "after": made.after,
        "completion": made.completion,
    }


def first_look(films: Films, dice: Dice, *, text: bool) -> Sample:
    number = int(dice.integers(len(films.films)))
    film, stage = films.films[number], films.stages[number]
    found, seen = _found(stage, film.shots[0])
    nobody = not stage.things  # another place
    lost, tau = nobody or dice.random() < _LOST, bool(dice.random() < TAU)
    if lost:
        instruction = unrelated(dice)
        if dice.random() < _OURS:  # of our world, and not on this table
            asked = wordings(films.films[int(dice.integers(len(films.films)))].script, dice).text
            instruction = asked if nobody or _missing(asked, stage) else instruction
        expected = {"tau": ""} if tau else {}
        empty = {"subtask": "", "before": "", **expected, "after": "", "completion": "lasting"}
        values: dict[str, Any] = {"objects": found, "grounded": False, "plan": [], **empty}
        about: tuple[Any, ...] = (number, [])
    else:
        task = task_of(stage, wordings(film.script, dice))
        instruction = task.wording.text
        entries = [{"outcome": step.outcome, "criterion": step.criterion, "times": 1} for step in plan_of(task).steps]
        values = {"objects": found, "grounded": True, "plan": entries, **step_fields(task.told[0], tau=tau)}
        about = (number, [entry["outcome"] for entry in entries])
    question = orienter.first(instruction, NO_IMAGE, tau=tau, max_steps=MAX_STEPS)
    reply = json.dumps(values)
    given = reply.index('"grounded"') if text else 0
    case = "lost" if lost else film.script.task
    return Sample(question, [] if text else [(number, 0)], reply, given, case=case, about=about, seen=seen)


def _found(stage: Stage, shot: Shot) -> tuple[list[dict[str, Any]], dict[tuple[int, int], tuple[int, ...]]]:
    """The list of objects, and which things each of its entries is read off."""
    there = objects(stage, shot)
    seen = {(0, at): numbers for at, (_, numbers) in enumerate(there)}
    return [{"name": name, "count": len(numbers)} for name, numbers in there], seen


def look(films: Films, dice: Dice, *, text: bool) -> Sample:
    """Any frame, and what stands where: the first words of a first look, without what would be planned from there."""
    number = int(dice.integers(len(films.films)))
    film, stage = films.films[number], films.stages[number]
    at = int(dice.integers(len(film.frames)))
    found, seen = _found(stage, film.shots[film.frames[at]])
    question = orienter.first(film.script.instruction, NO_IMAGE, tau=True, max_steps=MAX_STEPS)
    reply = json.dumps({"objects": found})[:-1]
    return Sample(question, [] if text else [(number, at)], reply, case=film.script.task, seen=seen)


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
            if part.deed.kind == "move":  # a box that is not said is known once it was used
                part = replace(part, deed=replace(part.deed, goal=stage.deeds[pick].goal))
            if part.deed.kind == "lift" and part.thing is not None:
                seen = stage.beneath(part.thing, film.shots[films.begin(number, pick)])
            elif part.deed.kind == "watch":
                seen = f" after {film.script.steps[pick].act.colours[-1]}"  # type: ignore[attr-defined]
            text = imagined_fact(stage, part.deed, part, seen, film.shots[films.begin(number, pick)])
        facts.append(Fact(at + 1, text))
    return tuple(facts)


def _done(task: Task, dice: Dice) -> int:
    """How many steps are."""
    found_out = [at for at in range(1, len(task.planned)) if task.told[at] != task.planned[at]]
    if found_out and dice.random() < _LOOKED_UP:
        return int(dice.choice(found_out))
    return int(dice.integers(1, len(task.planned)))


def next_step(films: Films, dice: Dice, *, text: bool) -> Sample:
    """What was found out is in the memory. Who knows a film by its picture knows what comes next without reading: most of the time
    the words are a draft's, and the picture is of any moment of another episode of its task."""
    if text or dice.random() >= _UNTOLD:
        return _next_step(films, dice, pictured=not text)
    sample = _next_step(drafts(dice, 1, DRAFTED["next"]), dice, pictured=False)
    alike = [number for number, film in enumerate(films.films) if film.script.task == sample.case]
    number = int(dice.choice(alike or len(films.films)))
    return replace(sample, frames=[(number, int(dice.integers(len(films.films[number].frames))))])


def _next_step(films: Films, dice: Dice, *, pictured: bool) -> Sample:
    number = int(dice.integers(len(films.films)))
    film, stage = films.films[number], films.stages[number]
    while True:
        task = task_of(stage, wordings(film.script, dice))
        if len(task.planned) > 1:
            break
    plan, done = plan_of(task), _done(task, dice)
    memory = _remembered(films, number, task, done)
    frames: list[Frame] = []
    if pictured:
        pick = task.wording.picks[min(done, len(task.wording.picks)) - 1]
        frames = [(number, films.nearest(number, film.ends[pick] + int(dice.integers(0, 5))))]
    flagged = replace(plan, steps=tuple(replace(step, satisfied=at < done) for at, step in enumerate(plan.steps)))
    tau = bool(dice.random() < TAU)
    question = orienter.next_step(task.wording.text, flagged, memory, NO_IMAGE, tau=tau, max_steps=MAX_STEPS)
    reply = json.dumps({"edits": [], **step_fields(task.told[done], tau=tau)})
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
    question = orienter.review(task.wording.text, flagged, memory, NO_IMAGE, max_steps=MAX_STEPS)
    frames = [] if text else [(number, len(film.frames) - 1)]
    return Sample(question, frames, json.dumps({"omitted": missing}), case=film.script.task)
