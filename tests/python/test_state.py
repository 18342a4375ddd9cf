"""State: what each event makes of an episode. Nothing else ever changes it."""

from __future__ import annotations

import pytest
from chaos import ChaosLatency, chaos_models, chaos_world
from story import (
    after,
    begun,
    completed,
    gap,
    invalid,
    mark,
    nothing_there,
    oriented,
    over,
    plan,
    proposed,
    reviewed,
    scored,
    started,
    turned_down,
    verified,
    words,
)
from test_executors import settings_of

from compass_edge.loop.candidate import CandidateRule
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Asked, Ended, Event, Stalled, Trouble
from compass_edge.loop.plan import Fact
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State, apply, fold, start
from compass_edge.loop.ticks import Tick
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.scripted.ticks import ScriptedTicks

IN_FLIGHT = [oriented(0, 3), begun(1, 0)]
ONE_OF_THREE: list[Event] = [*IN_FLIGHT, *completed(5)]


class TestBeginning:
    def test_an_episode_begins_with_its_first_frame_and_its_settings(self) -> None:
        state = start(started(every=5, candidate={"high": 0.7}))
        assert state == State(Settings(every=5, candidate=CandidateRule(high=0.7)), "do it", mark(0), mark(0), mark(0))

    def test_the_first_event_says_so(self) -> None:
        with pytest.raises(TypeError, match="must be EpisodeStarted, and Ended came"):
            fold([Ended("done")])

    def test_it_begins_once(self) -> None:
        with pytest.raises(TypeError, match="has started and cannot take EpisodeStarted"):
            apply(after(), started())

    def test_without_a_plan_or_a_step_nobody_can_speak_of_one(self) -> None:
        with pytest.raises(TypeError, match="no plan"):
            _ = after().the_plan
        with pytest.raises(TypeError, match="no step in flight"):
            apply(after(oriented(0, 1)), scored(1, 0.5)[0])


class TestOriented:
    def test_the_plan_and_the_words_for_its_first_step(self) -> None:
        state = after(oriented(4, 3))
        assert (state.plan, state.described, state.grounded) == (plan(3), words(1), True)
        assert state.here == state.cursor == mark(4)

    def test_a_look_that_found_nothing(self) -> None:
        state = after(nothing_there(4))
        assert (state.plan, state.grounded, state.looks) == (None, False, 1)
        assert state.here == state.cursor == mark(4)

    def test_a_step_begins_where_o_looked(self) -> None:
        state = after(oriented(4, 3), begun(1, 4))
        assert (state.the_step.step_id, state.the_step.subtask, state.the_step.began) == (1, words(1), mark(4))
        assert state.described is None


class TestVerified:
    def test_a_step_that_is_accepted_is_satisfied_and_remembered(self) -> None:
        state = after(ONE_OF_THREE)
        assert state.plan == plan(3, done=1)
        assert state.memory == (Fact(1, "seen at 5"),)
        assert state.active is None
        assert state.verified == pytest.approx(100 / 3)

    def test_the_episode_goes_on_from_the_accepted_frame(self) -> None:
        state = after(IN_FLIGHT, scored(1, 0.3, 0.8, 0.4, 0.4, 0.4), proposed(2, 1), verified(2))
        assert state.here == state.cursor == mark(2)

    def test_a_rejection_leaves_plan_memory_and_verified_progress(self) -> None:
        before, rejected = after(IN_FLIGHT, scored(5, 0.5)), after(IN_FLIGHT, turned_down(5))
        assert (rejected.plan, rejected.memory, rejected.verified) == (before.plan, (), 0.0)
        assert (rejected.here, rejected.cursor) == (mark(0), mark(5))
        assert (rejected.the_step.verifications, rejected.the_step.tried) == (1, mark(5).seq)
        assert rejected.the_step.proposal is None

    def test_a_rejection_makes_the_rule_wait(self) -> None:
        for ticks, candidate in ((3, False), (4, True)):
            state = after(IN_FLIGHT, turned_down(5), scored(6, *[1.0] * ticks))
            assert (state.the_step.candidate is not None) == candidate

    def test_a_proposal_takes_the_candidate_away(self) -> None:
        state = after(IN_FLIGHT, scored(1, 0.95, 0.95))
        assert state.the_step.candidate is not None
        assert apply(state, proposed(2, 1)).the_step.candidate is None


class TestVerifiedProgress:
    """It rises by an accepted verification alone, whatever O makes of the plan."""

    def test_a_longer_plan_lowers_it(self) -> None:
        assert after(ONE_OF_THREE, oriented(5, 4, done=1)).verified == 25.0

    def test_a_shorter_plan_does_not_raise_it(self) -> None:
        assert after(ONE_OF_THREE, oriented(5, 2, done=1)).verified == pytest.approx(100 / 3)

    def test_nor_does_one_that_is_longer_and_then_shorter_again(self) -> None:
        assert after(ONE_OF_THREE, oriented(5, 4, done=1), oriented(5, 2, done=1)).verified == 25.0

    def test_the_next_acceptance_catches_up(self) -> None:
        shorter = [*ONE_OF_THREE, oriented(5, 2, done=1), begun(2, 5)]
        assert after(shorter, completed(9)).verified == 100.0

    def test_what_a_review_finds_lowers_it(self) -> None:
        done = [oriented(0, 1), begun(1, 0), *completed(1)]
        assert after(done).verified == 100.0
        assert after(done, reviewed(1, 2, 1, revision=2)).verified == 50.0


class TestReplyInvalid:
    @pytest.mark.parametrize("trouble", ["schema", "meaning"])
    @pytest.mark.parametrize("asked", ["first", "next", "review"])
    def test_o_is_told_once_what_was_wrong(self, asked: Asked, trouble: Trouble) -> None:
        state = after(ONE_OF_THREE, invalid(asked, trouble, 5))
        assert (state.repair, state.attempts) == (f"{asked} was {trouble}", 1)

    @pytest.mark.parametrize("trouble", ["late", "missing"])
    def test_no_reply_is_nothing_to_repair(self, trouble: Trouble) -> None:
        state = after(ONE_OF_THREE, invalid("next", trouble, 5))
        assert (state.repair, state.attempts) == ("", 1)

    def test_what_is_wrong_with_the_others_is_not_told_to_o(self) -> None:
        assert after(IN_FLIGHT, scored(5, 0.95), proposed(5), invalid("verify", "schema", 5)).repair == ""
        assert after(IN_FLIGHT, invalid("score", "schema", 1)).repair == ""

    def test_a_valid_reply_ends_the_repair(self) -> None:
        state = after(ONE_OF_THREE, invalid("next", "schema", 5), oriented(5, 3, done=1))
        assert (state.repair, state.attempts, state.failures) == ("", 0, 0)

    def test_two_first_replies_are_a_look_without_a_result(self) -> None:
        state = after(invalid("first", "schema", 3), invalid("first", "schema", 3))
        assert (state.looks, state.grounded, state.attempts, state.repair) == (1, None, 0, "")
        assert state.here == state.cursor == mark(3)

    def test_two_next_replies_leave_the_old_plan(self) -> None:
        state = after(ONE_OF_THREE, invalid("next", "schema", 5), invalid("next", "meaning", 5))
        assert (state.plan, state.described, state.attempts) == (plan(3, done=1), None, 2)

    def test_two_reviews_leave_the_old_plan(self) -> None:
        done = [oriented(0, 1), begun(1, 0), *completed(1)]
        state = after(done, invalid("review", "schema", 1), invalid("review", "schema", 1))
        assert (state.plan, state.reviewed, state.attempts, state.repair) == (plan(1, done=1), True, 0, "")

    @pytest.mark.parametrize("trouble", ["schema", "meaning"])
    def test_an_invalid_verdict_is_a_rejection(self, trouble: Trouble) -> None:
        state = after(IN_FLIGHT, scored(5, 0.95), proposed(5), invalid("verify", trouble, 5))
        assert (state.the_step.proposal, state.the_step.verifications, state.attempts) == (None, 1, 0)
        assert state.the_step.tried == mark(5).seq

    @pytest.mark.parametrize("trouble", ["late", "missing"])
    def test_a_verdict_that_does_not_come_is_asked_for_again(self, trouble: Trouble) -> None:
        once = after(IN_FLIGHT, scored(5, 0.95), proposed(5), invalid("verify", trouble, 5))
        assert (once.the_step.proposal is not None, once.the_step.verifications) == (True, 0)
        twice = apply(once, invalid("verify", trouble, 5))
        assert (twice.the_step.proposal, twice.the_step.verifications, twice.attempts) == (None, 1, 0)

    def test_a_score_that_is_no_score_skips_the_frame(self) -> None:
        state = after(IN_FLIGHT, scored(1, 0.3), invalid("score", "schema", 2))
        assert (state.cursor, state.attempts) == (mark(2), 0)
        assert state.the_step.newest == mark(1)

    def test_a_score_that_does_not_come_is_asked_for_again(self) -> None:
        once = after(IN_FLIGHT, scored(1, 0.3), invalid("score", "late", 2))
        assert (once.cursor, once.attempts) == (mark(1), 1)
        assert apply(once, invalid("score", "late", 2)).cursor == mark(2)

    def test_attempts_are_those_of_one_call(self) -> None:
        """A late score and a late verdict are not two late scores."""
        state = after(IN_FLIGHT, invalid("score", "late", 1), scored(1, 0.9), proposed(1), invalid("verify", "late", 1))
        assert state.the_step.proposal is not None

    def test_failures_in_a_row_are_counted_over_all_models(self) -> None:
        events = [invalid("next", "late", 5), invalid("next", "late", 5), begun(2, 5), invalid("score", "schema", 6)]
        assert [after(ONE_OF_THREE, events[:count]).failures for count in range(5)] == [0, 1, 2, 2, 3]
        assert after(ONE_OF_THREE, events, scored(7, 0.1)).failures == 0


class TestGap:
    def test_a_gap_is_counted_and_known(self) -> None:
        state = after(gap(3), gap(8))
        assert (state.gaps, state.gap_at) == (2, mark(8).seq)

    def test_the_step_goes_on_and_nothing_counts_as_held_across_it(self) -> None:
        before = after(IN_FLIGHT, scored(1, 0.5, 0.95))
        state = apply(before, gap(4))
        assert (state.the_step.clip, state.cursor) == (before.the_step.clip, mark(2))
        assert (before.the_step.watch.held, state.the_step.watch.held) == (1, 0)

    def test_after_a_restart_the_step_begins_again(self) -> None:
        state = after(IN_FLIGHT, turned_down(1), scored(2, 0.95, 0.95), proposed(3), gap(9, restart=True))
        step = state.the_step
        assert (step.step_id, step.subtask, step.began) == (1, words(1), mark(9))
        assert (step.clip, step.candidate, step.proposal, step.stride) == ((), None, None, 1)
        assert (step.watch.held, step.watch.quiet) == (0, 0)
        assert state.here == state.cursor == mark(9)

    def test_a_restart_is_no_way_around_the_verifications_of_a_step(self) -> None:
        spent = [*IN_FLIGHT, *turned_down(1), *turned_down(2), Stalled(1, 2)]
        step = after(spent, gap(9, restart=True), max_verifications=2).the_step
        assert (step.verifications, step.stalled) == (2, True)

    def test_after_a_restart_every_call_is_a_new_one(self) -> None:
        state = after(ONE_OF_THREE, invalid("next", "schema", 5), gap(9, restart=True))
        assert (state.attempts, state.repair, state.failures) == (0, "", 1)

    def test_frames_may_count_from_zero_after_a_restart(self) -> None:
        state = after(IN_FLIGHT, turned_down(50), gap(0, restart=True), scored(1, 0.4))
        assert state.the_step.tried < state.the_step.newest.seq

    def test_a_restart_keeps_what_was_verified(self) -> None:
        state = after(ONE_OF_THREE, over(8), gap(9, restart=True))
        assert (state.plan, state.memory, state.verified) == (plan(3, done=1), (Fact(1, "seen at 5"),), 100 / 3)
        assert (state.here, state.over) == (mark(9), False)


def test_the_end_of_the_stream() -> None:
    state = after(IN_FLIGHT, scored(1, 0.3), over(3))
    assert (state.over, state.cursor) == (True, mark(3))


def test_a_stalled_step_has_no_candidates() -> None:
    for sure in ([], scored(3, 1.0, 1.0)):
        state = after(IN_FLIGHT, scored(1, 0.95, 0.95), Stalled(1, 8), sure)
        assert (state.the_step.stalled, state.the_step.candidate) == (True, None)


def test_the_outcome() -> None:
    assert after(Ended("stopped")).outcome == "stopped"


class TestKeeps:
    """The frames that may be asked for later. All others can be freed."""

    def test_the_frame_that_o_is_shown_and_the_last_that_was_used(self) -> None:
        assert after(ONE_OF_THREE).keeps() == ({50}, 50, 50)

    def test_the_clip_of_the_step_in_flight(self) -> None:
        assert after(IN_FLIGHT, scored(1, 0.1, 0.2)).keeps() == ({0, 10, 20}, 20, 20)

    def test_everything_since_a_peak_because_the_next_step_may_begin_there(self) -> None:
        assert after(IN_FLIGHT, scored(1, 0.3, 0.8, 0.7)).keeps() == ({0, 10, 20, 30}, 20, 30)

    def test_a_proposal_and_its_middle_frame(self) -> None:
        state = after(IN_FLIGHT, scored(1, *[0.1] * 7), proposed(5, 3), max_frames=4)
        assert state.keeps() == ({0, 30, 40, 50, 70}, 50, 70)


class Strict(ScriptedTicks):
    """A tick that was let go is never seen again, asked for or come upon."""

    asked = 0

    def after(self, seq: int) -> Tick | None:
        tick = super().after(seq)
        return None if tick is None else self.get(tick.mark.seq)

    def get(self, seq: int) -> Tick:
        self.asked += 1
        return super().get(seq)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_every_tick_that_is_asked_for_was_kept(first: int) -> None:
    for seed in range(first, first + 50):
        models, world = chaos_models(), chaos_world(seed)
        ticks, rules = Strict(world), settings_of(seed)

        def bounded(_event: Event, state: State, most: int = rules.max_frames) -> None:
            keep, since, used = state.keeps()
            assert since <= used == state.cursor.seq
            assert len(keep) <= most + 3  # the clip, O's frame, the proposal and its middle

        episode = Episode.begin(world.instruction, ticks, models.names(), settings=rules, subscribers=(bounded,))
        run_sequential(episode, VirtualLanes(models, ChaosLatency(seed, late=0.03)))
        assert ticks.asked
