"""The tracer: listens to the events of a run, and makes its curve and its trace out of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.episode import Episode
from compass_edge.errors import CompassError
from compass_edge.eval.result import LoopTrace, Ruling
from compass_edge.loop.events import CompletionProposed, Event, ReplyInvalid, Verified
from compass_edge.loop.progress import UNVERIFIED_CEILING
from compass_edge.loop.state import State

# Between two ticks: linear, as the curves of all other methods are; or held, as a robot's program reads it.
Between = Literal["linear", "held"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands after a tick. `position` is 0 before there is a plan."""

    frame: int
    position: int
    local: float
    size: int


@dataclass(frozen=True, slots=True)
class _Proposed:
    step: int
    began: int
    frame: int


class Tracer:
    """Subscribe it to an episode of the loop before it runs."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self._newest = 0
        self._readings: dict[int, Reading] = {}
        self._proposed: _Proposed | None = None
        self._rulings: list[Ruling] = []
        self._sizes: set[int] = set()
        self._invalid: Counter[str] = Counter()
        self._state: State | None = None

    def __call__(self, event: Event, state: State) -> None:
        """A tick's reading is what stands when all is done that needs no later frame.

        A step that is accepted at an earlier frame changes nothing of what was read before: no hindsight.
        """
        frame = getattr(event, "frame", None)  # Stalled and Ended have none
        self._newest = max(self._newest, frame.seq if frame is not None else 0)
        self._state = state
        self._readings[self._newest] = self._read(state)
        if isinstance(event, CompletionProposed):
            active = state.the_step
            self._proposed = _Proposed(state.the_plan.position, active.began.seq, event.frame.seq)
        elif isinstance(event, Verified):
            self._rule(event.accepted)
        elif isinstance(event, ReplyInvalid):
            self._invalid[event.role] += 1
            if event.asked == "verify" and state.the_step.proposal is None:
                self._rule(accepted=False)

    def _read(self, state: State) -> Reading:
        plan = state.plan
        if plan is None:
            return Reading(self._newest, 0, 0.0, 0)
        self._sizes.add(plan.size)
        local = state.active.local if state.active is not None else 0.0
        return Reading(self._newest, plan.position, min(local, UNVERIFIED_CEILING), plan.size)

    def _rule(self, accepted: bool) -> None:
        proposed = self._proposed
        if proposed is None:
            raise TypeError("A verdict follows a proposal, and there was none.")
        steps = self._episode.steps or ()
        end = steps[proposed.step - 1].end if proposed.step <= len(steps) else None
        true = end is not None and proposed.began < end <= proposed.frame
        self._rulings.append(Ruling(proposed.step, proposed.frame, accepted, true))
        self._proposed = None

    def finished(
        self, seconds: dict[str, float], calls: dict[str, int], between: Between
    ) -> tuple[NDArray[np.float64], LoopTrace]:
        """The values and the trace, once the run is over."""
        state = self._state
        if state is None or state.outcome is None:
            raise CompassError(f"The run of episode '{self._episode.id}' must have ended before its curve is known.")
        position, local, values = curve(list(self._readings.values()), self._episode.frames, between)
        annotated = self._episode.steps
        trace = LoopTrace(
            position,
            local,
            tuple(step.outcome for step in state.plan.steps) if state.plan is not None else (),
            annotated is not None and self._sizes == ({len(annotated)} if annotated else set()),
            tuple(self._rulings),
            state.outcome,
            len(self._rulings),
            seconds,
            calls,
            dict(self._invalid),
        )
        return values, trace


def curve(
    readings: list[Reading], frames: int, between: Between
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """k_t, p_loc and the value of every frame.

    The position is held from tick to tick: it moves where V has accepted, and nowhere between. Linear is p_loc alone, and
    only between two ticks of one step of one plan, so that a value never runs ahead of its position.
    """
    at = np.array([reading.frame for reading in readings], np.int64)
    tick = np.searchsorted(at, np.arange(frames), side="right") - 1
    positions = np.array([reading.position for reading in readings], np.int64)
    sizes = np.array([reading.size for reading in readings], np.int64)
    locals_ = np.array([reading.local for reading in readings], np.float64)
    position, size, local = positions[tick], sizes[tick], locals_[tick]
    if between == "linear":
        following = np.minimum(tick + 1, at.size - 1)
        same = (positions[following] == position) & (sizes[following] == size)
        span = np.maximum(at[following] - at[tick], 1)
        share = (np.arange(frames) - at[tick]) / span
        local = np.where(same, local + share * (locals_[following] - local), local)
    values = np.where(size > 0, 100.0 * ((position - 1) + local) / np.maximum(size, 1), 0.0)
    return position, local, values
