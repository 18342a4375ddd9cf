"""The catalogue: tasks by name, seeds by what they are for, and the script of any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compass_edge.data.episode import Form
from compass_edge.errors import UsageError
from compass_edge.sim.dice import Dice
from compass_edge.sim.layout import Layout
from compass_edge.sim.look import Look
from compass_edge.sim.manner import Manner
from compass_edge.sim.script import Script
from compass_edge.sim.tasks import recurrence, sequence, state
from compass_edge.sim.tasks.draft import PAINTS, Draft

TEST_SEEDS = range(5)
NEGATIVE_SEEDS = range(100, 1000)
TUNING_SEEDS = range(1000, 10_000)
TRAIN_SEEDS = range(10_000, 100_000_000)


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    form: Form
    draft: Callable[[Layout], Draft]

    @property
    def title(self) -> str:
        return (self.draft.__doc__ or "").partition(": ")[2].rstrip(".")


_FORMS: tuple[tuple[str, Form, tuple[Callable[[Layout], Draft], ...]], ...] = (
    ("S", "state", (state.put_back, state.round_trips, state.covers, state.shown_colour, state.blinks, state.swap_twice,
                    state.boxes, state.search)),
    ("Q", "sequence", (sequence.buttons, sequence.tubes, sequence.slots, sequence.taps, sequence.confirmed_swap,
                       sequence.stack, sequence.lamp_phases, sequence.shown_order)),
    ("R", "recurrence", (recurrence.presses, recurrence.three_buttons, recurrence.shuttle, recurrence.lifts,
                         recurrence.many_lifts, recurrence.dips, recurrence.alternate, recurrence.cover_lifts)),
)  # fmt: skip
TASKS = {
    f"{letter}{number}": Task(f"{letter}{number}", form, draft)
    for letter, form, drafts in _FORMS
    for number, draft in enumerate(drafts, start=1)
}


def split(seed: int) -> str:
    """What a seed is for. No seed is for two things."""
    if seed in TEST_SEEDS:
        return "test"
    if seed in NEGATIVE_SEEDS:
        return "negatives"
    if seed in TUNING_SEEDS:
        return "tuning"
    if seed in TRAIN_SEEDS:
        return "train"
    raise UsageError(
        f"A seed must be 0-4 (test), 100-999 (negatives), 1000-9999 (tuning) or 10000 and more (training), not {seed}."
    )


def write(task: str, seed: int) -> Script:
    """The script of an episode. Layout, look and manner are drawn apart: another camera leaves the motion as it was."""
    if task not in TASKS:
        raise UsageError(f"There is no task '{task}'. There are: {', '.join(TASKS)}.")
    purpose = split(seed)
    chosen = TASKS[task]
    table = Layout(Dice(task, seed, "layout"))
    draft = recurrence.presses(table, 8) if task == "R1" and purpose == "negatives" else chosen.draft(table)
    used = {thing.colour for thing in table.things}
    table.toy(table.dice.choice([paint for paint in PAINTS if paint not in used] or ["white"]))
    manner = Manner.drawn(Dice(task, seed, "manner"), retreat=draft.retreat, clumsy=purpose == "train")
    return Script(
        task, seed, chosen.form, draft.instruction, tuple(table.things), tuple(draft.places), tuple(draft.steps),
        Look.drawn(Dice(task, seed, "look")), manner, draft.switches, draft.variant,
    )  # fmt: skip
