"""What an Orienter that sees the first frame can plan of an episode, and what it can say of each step when its turn comes.

Some of it nobody can know at the beginning: which colour a lamp will show, which box a block will go into, what a cover hides.
There the plan says so in words ("the button of the colour that the lamp showed"), and the step is put in full once it was seen.
A lamp's blinks cannot be counted in three frames: the plan has as many presses as such an episode has on average.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compass_edge.data.episode import Episode
from compass_edge.loop.plan import Subtask
from compass_edge.sim.deed import Deed, parse

BLINKS = 3  # presses that are planned for a lamp that blinks from 2 to 5 times
_ORDER = ("first", "second", "third")
_IN_ORDER = re.compile(r"in the order (\w+), (\w+), (\w+)")


def deed_of(sentence: str, facts: Mapping[str, Any]) -> Deed:
    """Of a step of the simulator."""
    found = parse(sentence, str(facts.get("to", "")))
    if found is None:
        raise ValueError(f"The simulator has no step '{sentence}'.")
    return found


def planned(task: str, deeds: Sequence[Deed]) -> list[Deed]:
    """As the first frame lets them be told."""
    plan = list(deeds)
    if task == "S4":
        shown = "of the colour that the lamp showed"
        plan[1] = replace(plan[1], what=f"the button {shown}")
        plan[2] = replace(plan[2], goal=f"the mat {shown}")
        plan[3] = replace(plan[3], origin=f"the mat {shown}")
    elif task == "S5":
        plan = [replace(plan[0], goal="has blinked and stays dark"), *[plan[1]] * BLINKS]
    elif task == "S7":
        names = ("one gray box", "the other gray box", f"the gray box that holds {plan[0].what}")
        plan = [replace(deed, goal=name) for deed, name in zip(plan, names, strict=False)]
    elif task == "Q8":
        lifts = [
            replace(deed, what=f"the {nth} block that the lamp showed")
            for deed, nth in zip(plan[1:], _ORDER, strict=False)
        ]
        plan = [plan[0], *lifts]
    return plan


def hunted(task: str, deeds: Sequence[Deed], instruction: str) -> list[Deed]:
    """S3 and S8 plan by the colours that their instruction names: of S3 each cover after what it hides, so that it can be found by it."""
    plan = planned(task, deeds)
    if task == "S8" and plan and plan[-1].kind == "move":
        wanted = instruction.rstrip(".").split()[-2]
        plan[-1] = replace(plan[-1], goal=f"the table in front of the cover that hides the {wanted} block")
    if task == "S3" and (named := _IN_ORDER.search(instruction)) is not None:
        lifts = [at for at, deed in enumerate(plan) if deed.kind == "lift"]
        for at, paint in zip(lifts, named.groups(), strict=False):
            plan[at] = replace(plan[at], what=f"the cover that hides the {paint} block, {plan[at].what},")
    return plan


def told(task: str, deeds: Sequence[Deed], at: int) -> Deed:
    """The step at hand, in full as far as what was seen before it tells."""
    if task in ("S4", "S8") or (task == "S7" and at > 0):
        return deeds[at]
    return planned(task, deeds)[min(at, len(planned(task, deeds)) - 1)]


def outcomes_of(deeds: Sequence[Deed]) -> list[str]:
    """As the plan has them: what comes several times is numbered."""
    texts = [deed.outcome for deed in deeds]
    seen: dict[str, int] = {}
    numbered = []
    for text in texts:
        seen[text] = seen.get(text, 0) + 1
        count = texts.count(text)
        numbered.append(f"{text} ({seen[text]} of {count})" if count > 1 else text)
    return numbered


def deeds(episode: Episode) -> list[Deed]:
    return [deed_of(step.sentence, step.facts) for step in episode.truth]


def outcomes(episode: Episode) -> list[str]:
    """The plan that the first frame of an annotated episode allows."""
    return outcomes_of(hunted(_film_of(episode), deeds(episode), episode.instruction))


def subtasks(episode: Episode) -> list[Subtask]:
    """Each step of an annotated episode in an Orienter's words."""
    task, done = _film_of(episode), deeds(episode)
    return [told(task, done, at).subtask() for at in range(len(done))]


def _film_of(episode: Episode) -> str:
    """A negative's words are those of the task whose film it is."""
    from compass_edge.sim.negatives import NEGATIVES

    found = NEGATIVES.get(episode.task)
    return found.base if found is not None else episode.task
