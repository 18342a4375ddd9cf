"""Edits of a plan by O: what may be asked for, and the plan that comes out.

Satisfied steps are out of reach, an id is given once, and no edit can finish a task: promises that hold whatever a model
writes, so they are kept here and not in a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compass_edge.loop.plan import Plan, Step
from compass_edge.roles.reply import InvalidReply, said, shown
from compass_edge.roles.schema import Schema, choice, record, several, whole, whole_or_null, words

OUTCOME, CRITERION = 160, 200  # characters
_MAX_ID = 1_000_000
_STEP = {"outcome": words(OUTCOME), "criterion": words(CRITERION), "times": whole(1, 99)}


def steps_schema(most: int) -> Schema:
    return several(record(**_STEP), most)


def edits_schema(most: int) -> Schema:
    place = whole_or_null(1, _MAX_ID)
    return several(record(op=choice("add", "correct", "remove", "move"), id=place, before=place, **_STEP), most)


def new_plan(entries: Sequence[dict[str, Any]]) -> Plan:
    """The first plan, of entries that fit `steps_schema`."""
    steps = tuple(_step(number, entry) for number, entry in enumerate(entries, start=1))
    return Plan(steps, issued=len(steps))


def extend(plan: Plan, entries: Sequence[dict[str, Any]], max_steps: int) -> Plan:
    """The plan with further steps at its end; the very same plan when there are none."""
    added = (_step(number, entry) for number, entry in enumerate(entries, start=plan.next_id))
    return _revised(plan, [*plan.steps, *added], max_steps)


def revise(plan: Plan, edits: Sequence[dict[str, Any]], max_steps: int) -> Plan:
    """The plan after the edits, one after the other; the very same plan when they change nothing."""
    steps, new_id = list(plan.steps), plan.next_id
    for edit in edits:
        op = edit["op"]
        if op == "add":
            if edit["id"] is not None:
                raise InvalidReply(
                    "meaning",
                    f'An added step gets its id from us: its "id" must be null, and {shown(edit["id"])} came.',
                )
            _insert(steps, _step(new_id, edit), edit)
            new_id += 1
            continue
        at = _open(steps, edit["id"], "id", op)
        if op == "move":
            if edit["before"] == edit["id"]:
                raise InvalidReply("meaning", f"A step cannot be moved before itself, and step {steps[at].id} was.")
            _insert(steps, steps.pop(at), edit)
            continue
        if edit["before"] is not None:
            raise InvalidReply(
                "meaning",
                f'Only "add" and "move" place a step: "before" must be null for "{op}", and {edit["before"]} came.',
            )
        if op == "correct":
            steps[at] = _step(steps[at].id, edit)
        else:
            del steps[at]
    if all(step.satisfied for step in steps):
        raise InvalidReply(
            "meaning", "A task is never finished by editing its plan: at least one open step must remain, and none did."
        )
    return _revised(plan, steps, max_steps)


def _step(step_id: int, entry: dict[str, Any]) -> Step:
    outcome, criterion = said(entry["outcome"], "outcome"), said(entry["criterion"], "criterion")
    if entry["times"] != 1:
        raise InvalidReply(
            "meaning",
            f"The plan needs one step per occurrence: split the step {shown(outcome)} into {int(entry['times'])} steps "
            f'with "times" 1 each, because "times" must be 1 and {int(entry["times"])} came.',
        )
    return Step(step_id, outcome, criterion)


def _open(steps: list[Step], step_id: int | None, name: str, op: str) -> int:
    """Where the open step is."""
    for at, step in enumerate(steps):
        if step.id == step_id and not step.satisfied:
            return at
    open_ids = ", ".join(str(step.id) for step in steps if not step.satisfied) or "none"
    raise InvalidReply(
        "meaning",
        f'"{name}" of "{op}" must be the id of an open step (there are: {open_ids}), and {shown(step_id)} came.',
    )


def _insert(steps: list[Step], step: Step, edit: dict[str, Any]) -> None:
    before = edit["before"]
    steps.insert(len(steps) if before is None else _open(steps, before, "before", edit["op"]), step)


def _revised(plan: Plan, steps: list[Step], max_steps: int) -> Plan:
    if len(steps) > max_steps:
        raise InvalidReply("meaning", f"The plan must have at most {max_steps} steps, and {len(steps)} came.")
    return plan.revised(tuple(steps))
