"""The curve of a run: progress at every scored frame, as it was live, and re-based on the final plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compass_edge.loop.events import EpisodeStarted, Event, FrameScored, Verified
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


def curve(events: list[Event]) -> list[Point]:
    """One point a scored frame, in the order of frames.

    Satisfied steps never change and a step in flight stays until it is resolved, so that every scored step has a place in
    the final plan: the number of steps that were verified before it.
    """
    points: dict[int, Point] = {}
    completions: set[int] = set()
    state: State | None = None
    for event in events:
        state = start(event) if isinstance(event, EpisodeStarted) else apply(_known(state), event)
        if isinstance(event, FrameScored):
            now, step_id = progress_of(state), state.the_step.step_id
            points[now.frame] = Point(now.frame, now.captured_ns, now.value, 0.0, step_id, now.local, now.revision)
        elif isinstance(event, Verified) and event.accepted:  # scores beyond it are no longer true of anything
            points = {frame: point for frame, point in points.items() if frame <= event.frame.seq}
            completions.add(event.frame.seq)
    if state is None or state.plan is None:
        return []
    place = {step.id: index for index, step in enumerate(state.plan.steps)}
    return [
        replace(point, rebased=100 * (place[point.step_id] + _local(point, frame in completions)) / state.plan.size)
        for frame, point in sorted(points.items())
    ]


def _local(point: Point, completed_here: bool) -> float:
    return 1.0 if completed_here else min(point.local, UNVERIFIED_CEILING)


def _known(state: State | None) -> State:
    if state is None:
        raise TypeError("The first event of an episode must be EpisodeStarted.")
    return state
