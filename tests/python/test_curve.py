"""The curve of a run: as it was seen live, and as it is by the final plan."""

from __future__ import annotations

import itertools

import pytest
from story import (
    after,
    begun,
    completed,
    gap,
    mark,
    nothing_there,
    oriented,
    over,
    proposed,
    reviewed,
    scored,
    story,
    verified,
)
from test_executors import sequential

from compass_edge.loop.curve import Point, curve
from compass_edge.loop.events import Ended, Event, Oriented
from compass_edge.loop.plan import Plan


def live(*parts: Event | list[Event]) -> list[float]:
    return [pytest.approx(point.live) for point in curve(story(*parts))]


def rebased(*parts: Event | list[Event]) -> list[float]:
    return [pytest.approx(point.rebased) for point in curve(story(*parts))]


def ticks(*parts: Event | list[Event]) -> list[int]:
    return [point.frame // 10 for point in curve(story(*parts))]


FIRST = [oriented(0, 2), begun(1, 0), *scored(1, 0.5), *completed(2)]  # of two steps
SECOND = [oriented(2, 2, done=1), begun(2, 2), *scored(3, 0.5)]


class TestPoints:
    def test_one_a_scored_frame(self) -> None:
        assert curve(story(FIRST, SECOND)) == [
            Point(10, mark(1).captured_ns, 25.0, 25.0, step_id=1, local=0.5, revision=1),
            Point(20, mark(2).captured_ns, 47.5, 50.0, step_id=1, local=0.95, revision=1),
            Point(30, mark(3).captured_ns, 75.0, 75.0, step_id=2, local=0.5, revision=1),
        ]

    def test_none_before_there_is_a_plan(self) -> None:
        assert curve(story()) == curve([]) == []

    def test_none_of_an_episode_without_its_objects(self) -> None:
        assert curve(story(nothing_there(0), nothing_there(32), over(40), Ended("ungrounded"))) == []

    def test_an_episode_begins_at_its_beginning(self) -> None:
        with pytest.raises(TypeError, match="EpisodeStarted"):
            curve([Ended("done")])


class TestCompletion:
    def test_the_frame_that_was_accepted_reads_all_of_its_step(self) -> None:
        events = [*FIRST, *SECOND[:2], *scored(3, 0.2), *completed(4), reviewed(4, 2, 2), Ended("done")]
        assert rebased(events) == [25.0, 50.0, 60.0, 100.0]

    def test_a_step_that_was_not_accepted_stays_below(self) -> None:
        assert rebased(FIRST, SECOND[:2], scored(3, 1.0), over(3), Ended("incomplete"))[-1] == 99.5

    PEAK = (*scored(1, 0.4, 0.8, 0.3, 0.3, 0.3), proposed(2, 1), verified(2))

    def test_after_an_accepted_peak_the_scores_are_true_of_nothing(self) -> None:
        assert ticks(oriented(0, 2), begun(1, 0), *self.PEAK) == [1, 2]
        assert rebased(oriented(0, 2), begun(1, 0), *self.PEAK) == [20.0, 50.0]

    def test_a_rejected_peak_changes_nothing(self) -> None:
        rejected = [*self.PEAK[:-1], verified(2, accepted=False)]
        assert rebased(oriented(0, 2), begun(1, 0), rejected) == [20.0, 40.0, 15.0, 15.0, 15.0]

    def test_also_when_it_was_the_last_step(self) -> None:
        last = [oriented(0, 1), begun(1, 0), *self.PEAK, reviewed(2, 1, 1), Ended("done")]
        assert rebased(last) == [40.0, 100.0]

    def test_the_next_step_scores_those_frames_again(self) -> None:
        events = [oriented(0, 2), begun(1, 0), *self.PEAK, oriented(2, 2, done=1), begun(2, 2), *scored(3, 0.2, 0.6)]
        assert ticks(events) == [1, 2, 3, 4]
        assert rebased(events) == [20.0, 50.0, 60.0, 80.0]
        assert [point.step_id for point in curve(story(events))] == [1, 1, 2, 2]


class TestNewPlan:
    def test_a_plan_that_grows(self) -> None:
        """Live the curve falls back; re-based it never knew better."""
        events = [*FIRST, oriented(2, 4, done=1, revision=2), begun(2, 2), *scored(3, 0.5)]
        assert live(events) == [25.0, 47.5, 37.5]
        assert rebased(events) == [12.5, 25.0, 37.5]
        assert [point.revision for point in curve(story(events))] == [1, 1, 2]

    def test_a_plan_that_shrinks(self) -> None:
        four = [oriented(0, 4), begun(1, 0), *scored(1, 0.5), *completed(2)]
        events = [*four, oriented(2, 2, done=1, revision=2), begun(2, 2), *scored(3, 0.5)]
        assert live(events) == [12.5, pytest.approx(23.75), 75.0]
        assert rebased(events) == [25.0, 50.0, 75.0]

    def test_a_step_has_the_place_of_its_completion_whatever_its_id(self) -> None:
        plan = after(FIRST).the_plan
        moved = Plan((plan.steps[0], after(oriented(0, 3)).the_plan.steps[2], plan.steps[1]), revision=2)
        events = [*FIRST, Oriented(mark(2), True, (("cup", 1),), moved, None), begun(3, 2), *scored(3, 0.5)]
        assert rebased(events)[-1] == 50.0

    def test_the_same_as_live_while_the_plan_stays(self) -> None:
        assert live(FIRST, SECOND)[::2] == rebased(FIRST, SECOND)[::2]


def test_frames_that_count_from_zero_after_a_restart_are_in_order_too() -> None:
    assert ticks(oriented(0, 1), begun(1, 0), scored(5, 0.5), gap(0, restart=True), scored(1, 0.2)) == [1, 5]


def test_points_are_in_the_order_of_frames_whatever_happens() -> None:
    for seed in range(100):
        points = curve(sequential(seed).events)
        frames = [point.frame for point in points]
        assert frames == sorted(set(frames))
        assert all(0 <= point.rebased <= 100 for point in points)
        steps = [step for step, _ in itertools.groupby(points, lambda point: point.step_id)]
        assert len(steps) == len({*steps})  # the points of a step are together
