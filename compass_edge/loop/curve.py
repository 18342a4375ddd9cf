"""The curve of a run: progress at every scored frame, as it was live, and re-based on the final plan."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.loop.events import EpisodeStarted, Event, FrameScored, StepBegun
from compass_edge.loop.progress import UNVERIFIED_CEILING, progress_of
from compass_edge.loop.state import State, apply, start


@dataclass(frozen=True, slots=True)
class Point:
    frame: int
    captured_ns: int
    live: float  # 0..100, by the plan of that moment
    rebased: float  # 0..100, by the final plan
    step_id: int
    local: float
    revision: int


@dataclass(frozen=True, slots=True)
class _Draft:
    frame: int
    captured_ns: int
    live: float
    step_id: int
    local: float
    revision: int


def curve(events: list[Event]) -> list[Point]:
    """One point a scored frame, in the order of frames; where a frame was scored under two steps, the later step counts.

    Satisfied steps never change and a step in flight stays until it is resolved, so that every scored step has a place in
    the final plan: the number of steps that were verified before it.
    """
    drafts: dict[int, _Draft] = {}
    state: State | None = None
    for event in events:
        state = start(event) if isinstance(event, EpisodeStarted) else apply(_known(state), event)
        if isinstance(
            event, StepBegun
        ):  # scores of an earlier step beyond its completion are no longer true of anything
            drafts = {seq: draft for seq, draft in drafts.items() if seq <= event.frame.seq}
        if isinstance(event, FrameScored):
            now = progress_of(state)
            drafts[now.frame] = _Draft(
                now.frame, now.captured_ns, now.value, state.the_step.step_id, now.local, now.revision
            )
    if state is None or state.plan is None:
        return []
    place = {step.id: index for index, step in enumerate(state.plan.steps)}
    accepted = {step.id for step in state.plan.steps if step.satisfied}
    last = {draft.step_id: draft.frame for draft in drafts.values()}
    return [
        Point(
            draft.frame,
            draft.captured_ns,
            draft.live,
            100 * (place[draft.step_id] + _local(draft, draft.step_id in accepted and draft.frame == last[draft.step_id]))
            / state.plan.size,
            draft.step_id,
            draft.local,
            draft.revision,
        )
        for _, draft in sorted(drafts.items())
    ]  # fmt: skip


def _local(draft: _Draft, completed_here: bool) -> float:
    return 1.0 if completed_here else min(draft.local, UNVERIFIED_CEILING)


def _known(state: State | None) -> State:
    if state is None:
        raise TypeError("The first event of an episode must be EpisodeStarted.")
    return state
