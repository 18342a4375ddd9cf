"""State: all that is true of an episode, and `apply`, the only way it changes. No clock, no I/O, no model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce, singledispatch
from typing import Any

from compass_edge.loop.active import ActiveStep, Proposal, Scored
from compass_edge.loop.events import (
    Asked,
    CompletionProposed,
    Ended,
    EpisodeStarted,
    Event,
    FrameScored,
    Gap,
    Oriented,
    Outcome,
    ReplyInvalid,
    Reviewed,
    Stalled,
    StepBegun,
    StreamEnded,
    Verified,
)
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Fact, Plan, Subtask
from compass_edge.loop.settings import Settings


@dataclass(frozen=True, slots=True)
class State:
    settings: Settings
    instruction: str
    first: Mark
    here: Mark  # the frame that O is shown: where the last verified step was completed
    cursor: Mark  # the last tick that was used
    plan: Plan | None = None
    grounded: bool | None = None
    looks: int = 0  # of O, without a plan so far
    described: Subtask | None = None  # the next step in O's words, not begun yet
    memory: tuple[Fact, ...] = ()
    active: ActiveStep | None = None
    verified: float = 0.0  # 0..100; rises by an accepted verification alone
    reviewed: bool = False
    attempts: int = 0  # of the call at hand that brought no valid reply
    repair: str = ""  # what was wrong with O's last reply
    failures: int = 0  # replies in a row, of any model, that were not valid
    gaps: int = 0
    gap_at: int = -1  # the tick before which the last gap was seen
    over: bool = False  # the stream
    outcome: Outcome | None = None

    @property
    def the_plan(self) -> Plan:
        """For commands and events that speak of it."""
        if self.plan is None:
            raise TypeError("There is no plan yet.")
        return self.plan

    @property
    def the_step(self) -> ActiveStep:
        """For commands and events that speak of it."""
        if self.active is None:
            raise TypeError("There is no step in flight.")
        return self.active

    def keeps(self) -> tuple[set[int], int, int]:
        """The frames that may still be asked for: these, and all from that one on. And the last one that was used."""
        since, keep = self.cursor.seq, {self.here.seq}
        if self.active is not None:
            keep.add(self.active.began.seq)
            keep.update(scored.frame.seq for scored in self.active.clip)
            if self.active.proposal is not None:
                keep |= {self.active.proposal.frame.seq, self.active.proposal.during.seq}
                since = min(since, self.active.proposal.frame.seq)
            for candidate in (self.active.candidate, self.active.watch.peak):
                if candidate is not None:
                    since = min(since, candidate.frame.seq)
        return keep, since, self.cursor.seq


def start(event: EpisodeStarted) -> State:
    return State(Settings.from_dict(event.settings), event.instruction, event.frame, event.frame, event.frame)


def fold(events: list[Event]) -> State:
    """The state after these events, of which the first is EpisodeStarted."""
    first = events[0]
    if not isinstance(first, EpisodeStarted):
        raise TypeError(f"The first event of an episode must be EpisodeStarted, and {type(first).__name__} came.")
    return reduce(apply, events[1:], start(first))


def apply(state: State, event: Event) -> State:
    return _apply(event, state)


@singledispatch
def _apply(event: Any, state: State) -> State:
    raise TypeError(f"The episode '{state.instruction}' has started and cannot take {type(event).__name__}.")


def _answered(state: State, **changes: Any) -> State:
    return replace(state, attempts=0, repair="", failures=0, **changes)


@_apply.register
def _(event: Oriented, state: State) -> State:
    state = _answered(state, grounded=event.grounded, here=event.frame, cursor=event.frame, described=event.subtask)
    if event.plan is None:
        return replace(state, looks=state.looks + 1)
    return _replanned(state, event.plan)


def _replanned(state: State, plan: Plan) -> State:
    """A shorter plan must not look like progress: `verified` never rises here."""
    return replace(state, plan=plan, verified=min(state.verified, 100 * plan.done / plan.size))


@_apply.register
def _(event: StepBegun, state: State) -> State:
    """No model was asked for it: `failures` stays, should O have had no valid words for the step."""
    active = ActiveStep(event.step_id, event.subtask, event.frame)
    return replace(state, attempts=0, repair="", active=active, described=None)


@_apply.register
def _(event: FrameScored, state: State) -> State:
    active = state.the_step.scored(
        Scored(event.frame, event.score), state.settings.candidate, state.settings.every, state.settings.max_frames
    )
    return _answered(state, active=active, cursor=event.frame)


@_apply.register
def _(event: CompletionProposed, state: State) -> State:
    return replace(state, active=state.the_step.proposed(Proposal(event.frame, event.during)))


@_apply.register
def _(event: Verified, state: State) -> State:
    active = state.the_step
    if not event.accepted:
        return _answered(state, active=active.rejected(state.settings.candidate))
    plan = state.the_plan.satisfy(active.step_id)
    return _answered(
        state,
        plan=plan,
        memory=(*state.memory, Fact(active.step_id, event.candidate)),
        active=None,
        verified=100 * plan.done / plan.size,
        here=event.frame,
        cursor=event.frame,
    )


@_apply.register
def _(event: Reviewed, state: State) -> State:
    return _replanned(_answered(state, reviewed=True), event.plan)


@_apply.register
def _(event: ReplyInvalid, state: State) -> State:
    state = replace(state, attempts=state.attempts + 1, failures=state.failures + 1)
    if event.role == "orienter" and event.trouble in ("schema", "meaning"):
        state = replace(state, repair=event.detail)
    final = event.role != "orienter" and event.trouble in ("schema", "meaning")
    if final or state.attempts >= state.settings.max_attempts:
        return _given_up(state, event.asked, event.frame)
    return state


def _given_up(state: State, asked: Asked, frame: Mark) -> State:
    """V: a rejection. P: the frame goes without a score. O: the old plan stays, and its own words for the next step serve."""
    if asked == "verify":
        return replace(state, attempts=0, active=state.the_step.rejected(state.settings.candidate))
    if asked == "score":
        return replace(state, attempts=0, cursor=frame)
    if asked == "review":
        return replace(state, attempts=0, repair="", reviewed=True)
    if asked == "first":
        return replace(state, attempts=0, repair="", looks=state.looks + 1, here=frame, cursor=frame)
    return state  # next: `attempts` tells the Navigator


@_apply.register
def _(event: Gap, state: State) -> State:
    state = replace(state, gaps=state.gaps + 1, gap_at=event.frame.seq)
    active = state.active
    if event.restart:
        if active is not None:
            active = active.restarted(event.frame)
        here = replace(state, here=event.frame, cursor=event.frame, active=active, over=False)
        return replace(here, attempts=0, repair="")  # the next call shows other frames
    if active is None:
        return state
    return replace(state, active=replace(active, watch=state.settings.candidate.interrupted(active.watch)))


@_apply.register
def _(event: StreamEnded, state: State) -> State:
    return replace(state, over=True, cursor=event.frame)


@_apply.register
def _(_event: Stalled, state: State) -> State:
    return replace(state, active=replace(state.the_step, stalled=True, candidate=None))


@_apply.register
def _(event: Ended, state: State) -> State:
    return replace(state, outcome=event.outcome)
