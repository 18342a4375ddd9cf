"""Progress: the formula, the phases, and when a value is too old to be believed."""

from __future__ import annotations

import json

import pytest
from story import after, begun, completed, invalid, mark, nothing_there, oriented, over, proposed, reviewed, scored

from compass_edge.loop.events import Ended, Event, Stalled
from compass_edge.loop.progress import Phase, Progress, progress_of, provisional

S = 10**9
SECOND_OF_FOUR: list[Event] = [oriented(0, 4), begun(1, 0), *completed(5), oriented(5, 4, done=1), begun(2, 5)]
DONE: list[Event] = [oriented(0, 1), begun(1, 0), *completed(5), reviewed(5, 1, 1), Ended("done")]


def shown(*parts: Event | list[Event]) -> Progress:
    return progress_of(after(*parts))


class TestValue:
    def test_the_steps_before_it_and_how_far_the_step_is(self) -> None:
        now = shown(SECOND_OF_FOUR, scored(6, 0.2, 0.6))
        assert now.value == pytest.approx(100 * ((2 - 1) + 0.6) / 4)
        assert (now.step, now.steps, now.local, now.verified) == (2, 4, 0.6, 25.0)

    def test_a_step_that_has_just_begun_is_at_its_start(self) -> None:
        assert shown(SECOND_OF_FOUR).value == 25.0

    @pytest.mark.parametrize("score", [0.99, 0.995, 1.0])
    def test_a_step_never_counts_as_complete_before_v_has_accepted_it(self, score: float) -> None:
        now = shown(SECOND_OF_FOUR, scored(6, score))
        assert now.value == pytest.approx(100 * 1.99 / 4)
        assert now.local == score

    def test_it_follows_p_down_again(self) -> None:
        assert shown(SECOND_OF_FOUR, scored(6, 0.8, 0.1)).value == pytest.approx(100 * 1.1 / 4)

    def test_without_a_plan_there_is_none(self) -> None:
        now = shown(nothing_there(3))
        assert (now.value, now.verified, now.step, now.steps, now.revision) == (0.0, 0.0, 0, 0, 0)

    def test_when_all_steps_are_accepted_it_is_complete(self) -> None:
        now = shown(DONE[:-2])
        assert (now.value, now.verified, now.step, now.steps) == (100.0, 100.0, 1, 1)

    def test_a_new_plan_may_lower_it(self) -> None:
        now = shown(DONE[:-2], reviewed(5, 2, 1, revision=2))
        assert (now.value, now.verified, now.revision) == (50.0, 50.0, 2)

    def test_a_shorter_plan_raises_the_value_and_not_what_is_verified(self) -> None:
        now = shown(SECOND_OF_FOUR[:-2], oriented(5, 2, done=1, revision=2), begun(2, 5))
        assert (now.value, now.verified) == (50.0, 25.0)


class TestFrame:
    def test_it_is_the_newest_that_p_has_scored(self) -> None:
        now = shown(SECOND_OF_FOUR, scored(6, 0.2, 0.6), invalid("score", "schema", 8))
        assert (now.frame, now.captured_ns) == (mark(7).seq, mark(7).captured_ns)

    def test_between_steps_it_is_the_one_that_completed_the_last(self) -> None:
        assert shown(SECOND_OF_FOUR[:-2]).frame == mark(5).seq

    def test_a_provisional_value_is_of_a_frame_that_the_events_do_not_tell_of(self) -> None:
        now = provisional(after(SECOND_OF_FOUR), 0.7, mark(9), Phase.VERIFYING)
        assert (now.provisional, now.frame, now.phase) == (True, mark(9).seq, Phase.VERIFYING)
        assert now.value == pytest.approx(100 * 1.7 / 4)
        assert not shown(SECOND_OF_FOUR).provisional


class TestPhase:
    @pytest.mark.parametrize(
        ("phase", "events"),
        [
            (Phase.ORIENTING, []),
            (Phase.UNGROUNDED, [nothing_there(0)]),
            (Phase.ORIENTING, [nothing_there(0), oriented(32, 1)]),
            (Phase.TRACKING, [oriented(0, 1), begun(1, 0)]),
            (Phase.TRACKING, [oriented(0, 1), begun(1, 0), *scored(1, 0.95, 0.95)]),
            (Phase.VERIFYING, [oriented(0, 1), begun(1, 0), *scored(1, 0.95, 0.95), proposed(2, 1)]),
            (Phase.ORIENTING, DONE[:-2]),
            (Phase.ORIENTING, DONE[:-1]),
            (Phase.DONE, DONE),
            (Phase.STALLED, [oriented(0, 1), begun(1, 0), Stalled(1, 8)]),
            (Phase.STALLED, [oriented(0, 1), begun(1, 0), Stalled(1, 8), over(1), Ended("stalled")]),
            (Phase.TRACKING, [oriented(0, 1), begun(1, 0), over(1), Ended("incomplete")]),
        ],
    )
    def test_it_says_who_is_at_work(self, phase: Phase, events: list[Event]) -> None:
        assert shown(events).phase is phase

    def test_three_replies_in_a_row_that_are_not_valid_are_a_fault(self) -> None:
        events = [invalid("score", "schema", tick) for tick in (6, 7, 8)]
        assert shown(SECOND_OF_FOUR, *events[:2]).phase is Phase.TRACKING
        assert shown(SECOND_OF_FOUR, *events).phase is Phase.FAULT

    def test_a_valid_reply_ends_the_fault(self) -> None:
        events = [invalid("score", "schema", tick) for tick in (6, 7, 8)]
        assert shown(SECOND_OF_FOUR, *events, scored(9, 0.1)).phase is Phase.TRACKING


class TestAge:
    NOW = shown(SECOND_OF_FOUR, scored(6, 0.5))

    def test_it_is_that_of_the_frame(self) -> None:
        assert self.NOW.age_s(mark(6).captured_ns + 2 * S) == 2.0

    def test_a_value_is_fresh_up_to_the_limit(self) -> None:
        assert self.NOW.at(mark(6).captured_ns + 2 * S, max_age_s=2.0) is self.NOW

    def test_an_older_one_is_stale_and_otherwise_the_same(self) -> None:
        old = self.NOW.at(mark(6).captured_ns + 2 * S + 1, max_age_s=2.0)
        assert old.phase is Phase.STALE
        assert (old.value, old.frame, old.verified) == (self.NOW.value, self.NOW.frame, self.NOW.verified)

    def test_what_is_done_does_not_age(self) -> None:
        assert shown(DONE).at(10**6 * S, max_age_s=2.0).phase is Phase.DONE

    def test_nor_does_what_has_ended_otherwise(self) -> None:
        assert shown(SECOND_OF_FOUR, Ended("stopped")).at(10**6 * S, max_age_s=2.0).phase is Phase.TRACKING


def test_as_json() -> None:
    assert json.loads(json.dumps(shown(SECOND_OF_FOUR, scored(6, 0.5)).to_dict())) == {
        "value": 37.5,
        "verified": 25.0,
        "local": 0.5,
        "step": 2,
        "steps": 4,
        "revision": 1,
        "phase": "TRACKING",
        "frame": 60,
        "captured_ns": 6 * S,
        "provisional": False,
        "outcome": None,
    }
