"""The Navigator N: fixed rules, text only, exactly one command a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compass_edge.loop.active import ActiveStep
from compass_edge.loop.events import Outcome
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Plan, Step, Subtask
from compass_edge.loop.state import State


@dataclass(frozen=True, slots=True)
class Orient:
    """O: the first plan, from the first tick that is not before that frame."""

    not_before: int


@dataclass(frozen=True, slots=True)
class NextStep:
    """O: which step is next, and how it will look."""


@dataclass(frozen=True, slots=True)
class Review:
    """O, once: does the plan omit a step?"""


@dataclass(frozen=True, slots=True)
class Begin:
    """The next step: in O's words, or in the plan's own because O had no valid ones."""

    step: Step
    subtask: Subtask
    from_plan: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """P: the next tick after that one."""

    after: Mark


@dataclass(frozen=True, slots=True)
class Propose:
    frame: Mark
    during: Mark
    score: float
    reason: Literal["high", "peak", "end"]


@dataclass(frozen=True, slots=True)
class Verify:
    """V: is the proposal the completion of the step in flight?"""


@dataclass(frozen=True, slots=True)
class Stall:
    """The step has had all its verifications: P goes on, V is not asked again."""


@dataclass(frozen=True, slots=True)
class AwaitEnd:
    """Nothing to track: let the stream go by."""


@dataclass(frozen=True, slots=True)
class End:
    outcome: Outcome


Command: TypeAlias = Orient | NextStep | Review | Begin | Score | Propose | Verify | Stall | AwaitEnd | End


def decide(state: State) -> Command:
    """What comes next. An episode that has ended is not to be asked."""
    if state.plan is None:
        return _without_plan(state)
    if state.active is not None:
        return _in_flight(state, state.active)
    step = state.plan.next_open
    if step is None:
        return End("done") if state.reviewed else Review()
    if state.described is not None:
        return Begin(step, state.described)
    if state.over:
        return End("incomplete")
    if state.attempts >= state.settings.max_attempts:
        return Begin(step, in_the_plans_words(state.plan), from_plan=True)
    return NextStep()


def _without_plan(state: State) -> Command:
    if state.over:
        return End("ungrounded" if state.grounded is False else "unplanned")
    if state.looks >= state.settings.max_looks:
        return AwaitEnd()
    wait = state.settings.look_again * state.settings.every if state.looks else 0
    return Orient(state.here.seq + wait)


def _in_flight(state: State, active: ActiveStep) -> Command:
    if active.proposal is not None:
        return Verify()
    if active.verifications >= state.settings.max_verifications and not active.stalled:
        return Stall()
    if active.candidate is not None:
        found = active.candidate
        return Propose(found.frame, active.during(found.frame, state.settings.middle), found.score, found.reason)
    if not state.over:
        return Score(state.cursor)
    if active.stalled:
        return End("stalled")
    if active.clip and active.tried < active.newest.seq:
        return Propose(active.newest, active.during(active.newest, state.settings.middle), active.local, "end")
    return End("incomplete")


def in_the_plans_words(plan: Plan) -> Subtask:
    """The next open step, as the plan itself puts it."""
    step = plan.next_open
    if step is None:
        raise ValueError("Every step of this plan is satisfied.")
    return Subtask(step.outcome, "", step.criterion, step.criterion)
