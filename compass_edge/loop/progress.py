"""Progress: what a robot's program reads. A value with the frame it speaks of, so that nobody takes it for fresher."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from compass_edge.loop.mark import Mark
from compass_edge.loop.state import State

# A step that V has not accepted never counts as complete, however sure P is.
UNVERIFIED_CEILING = 0.99
# Replies in a row without a valid one.
FAULT_AFTER = 3


class Phase(str, Enum):
    ORIENTING = "ORIENTING"  # O is finding the plan or the next step
    TRACKING = "TRACKING"  # P scores the step in flight
    VERIFYING = "VERIFYING"  # V looks at a completion candidate
    DONE = "DONE"  # every step verified, the plan reviewed
    STALLED = "STALLED"  # the step in flight was rejected too often
    UNGROUNDED = "UNGROUNDED"  # the instruction's objects are not there
    STALE = "STALE"  # the newest frame behind the value is too old
    FAULT = "FAULT"  # a model does not answer


@dataclass(frozen=True, slots=True)
class Progress:
    value: float  # 0..100: ((k - 1) + p_loc) / K
    verified: float  # 0..100: rises by an accepted verification alone
    local: float  # 0..1: P's estimate within the step
    step: int  # k, from 1; 0 before there is a plan
    steps: int  # K
    revision: int  # of the plan; when it changes, K may have
    phase: Phase
    frame: int  # the newest behind the value
    captured_ns: int
    provisional: bool = False  # ahead of the events: never part of a decision
    outcome: str | None = None

    def age_s(self, now_ns: int) -> float:
        return (now_ns - self.captured_ns) / 1e9

    def at(self, now_ns: int, max_age_s: float) -> Progress:
        """As it must be read now: STALE when its frame is older than that. What has ended does not age."""
        if self.outcome is None and self.age_s(now_ns) > max_age_s:
            return replace(self, phase=Phase.STALE)
        return self

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "phase": self.phase.value}


def progress_of(state: State) -> Progress:
    local = state.active.local if state.active is not None else 0.0
    frame = state.here if state.active is None else state.active.newest
    return _progress(state, local, frame, _phase(state), provisional=False)


def provisional(state: State, score: float, frame: Mark, phase: Phase) -> Progress:
    """P has seen a newer frame than the events tell of, for a step that may not have begun yet."""
    return _progress(state, score, frame, phase, provisional=True)


def _progress(state: State, local: float, frame: Mark, phase: Phase, provisional: bool) -> Progress:
    plan = state.plan
    done, size = (plan.done, plan.size) if plan is not None else (0, 0)
    value = 100 * (done + min(local, UNVERIFIED_CEILING)) / size if size else 0.0
    return Progress(
        value=min(value, 100.0),
        verified=state.verified,
        local=local,
        step=min(done + 1, size),
        steps=size,
        revision=plan.revision if plan is not None else 0,
        phase=phase,
        frame=frame.seq,
        captured_ns=frame.captured_ns,
        provisional=provisional,
        outcome=state.outcome,
    )


def _phase(state: State) -> Phase:
    if state.outcome == "done":
        return Phase.DONE
    if state.failures >= FAULT_AFTER:
        return Phase.FAULT
    if state.plan is None:
        return Phase.UNGROUNDED if state.grounded is False else Phase.ORIENTING
    if state.active is None:
        return Phase.ORIENTING
    if state.active.stalled:
        return Phase.STALLED
    return Phase.TRACKING if state.active.proposal is None else Phase.VERIFYING
