"""The Navigator: which one command follows from a state. Each test is a rule."""

from __future__ import annotations

import pytest
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
    turned_down,
    verified,
    words,
)

from compass_edge.loop.events import Asked, Event, Stalled, Trouble
from compass_edge.loop.navigator import (
    AwaitEnd,
    Begin,
    End,
    NextStep,
    Orient,
    Propose,
    Review,
    Score,
    Stall,
    Verify,
    decide,
    in_the_plans_words,
)
from compass_edge.loop.plan import Subtask

IN_FLIGHT = [oriented(0, 2), begun(1, 0)]
REJECTED_8 = [event for tick in range(1, 9) for event in turned_down(tick)]
STALLED = Stalled(1, 8)


class TestWithoutAPlan:
    def test_it_begins_with_a_look_at_the_first_frame(self) -> None:
        assert decide(after()) == Orient(0)

    def test_while_the_objects_are_not_there_it_looks_again_32_ticks_later(self) -> None:
        assert decide(after(nothing_there(0))) == Orient(mark(32).seq)
        assert decide(after(nothing_there(0), nothing_there(33))) == Orient(mark(65).seq)

    def test_ticks_are_counted_in_frames(self) -> None:
        assert decide(after(nothing_there(0), every=3, look_again=5)) == Orient(15)

    def test_after_eight_looks_it_only_waits_for_the_end(self) -> None:
        looks: list[Event] = [nothing_there(32 * look) for look in range(8)]
        assert decide(after(looks[:7])) == Orient(mark(7 * 32).seq)
        assert decide(after(looks)) == AwaitEnd()

    def test_a_first_reply_that_is_refused_is_repaired_at_the_same_frame(self) -> None:
        assert decide(after(invalid("first", "schema"))) == Orient(0)
        assert decide(after(nothing_there(0), invalid("first", "meaning", 33))) == Orient(mark(32).seq)

    def test_two_that_are_refused_are_a_look(self) -> None:
        refused: list[Event] = [invalid("first", "schema"), invalid("first", "meaning")]
        assert decide(after(refused)) == Orient(mark(32).seq)

    def test_the_stream_ends_before_the_objects_come(self) -> None:
        assert decide(after(nothing_there(0), over(20))) == End("ungrounded")

    def test_the_stream_ends_before_there_is_a_valid_plan(self) -> None:
        assert decide(after(invalid("first", "late"), invalid("first", "late"), over(20))) == End("unplanned")

    def test_objects_that_come_late_are_found(self) -> None:
        assert decide(after(nothing_there(0), oriented(32, 2))) == Begin(plan(2).steps[0], words(1))


class TestNextStep:
    def test_a_step_begins_in_the_words_of_o(self) -> None:
        assert decide(after(oriented(0, 2))) == Begin(plan(2).steps[0], words(1))

    def test_without_words_for_the_next_open_step_o_is_asked(self) -> None:
        assert decide(after(*IN_FLIGHT, completed(1))) == NextStep()

    def test_a_reply_that_is_refused_is_repaired_once(self) -> None:
        assert decide(after(*IN_FLIGHT, completed(1), invalid("next", "schema", 1))) == NextStep()

    @pytest.mark.parametrize("troubles", [("schema", "meaning"), ("late", "late"), ("missing", "schema")])
    def test_after_two_the_step_begins_in_the_words_of_the_plan(self, troubles: tuple[Trouble, Trouble]) -> None:
        refused: list[Event] = [invalid("next", trouble, 1) for trouble in troubles]
        own = Subtask("outcome 2", "", "criterion 2", "criterion 2")
        assert decide(after(*IN_FLIGHT, completed(1), refused)) == Begin(plan(2).steps[1], own, from_plan=True)

    def test_the_words_of_the_plan_are_those_of_its_next_open_step(self) -> None:
        assert in_the_plans_words(plan(3, done=1)) == Subtask("outcome 2", "", "criterion 2", "criterion 2")
        with pytest.raises(ValueError, match="satisfied"):
            in_the_plans_words(plan(3, done=3))

    def test_no_step_begins_when_the_stream_is_over(self) -> None:
        assert decide(after(*IN_FLIGHT, scored(1, 0.5), over(1), proposed(1), verified(1))) == End("incomplete")


class TestStepInFlight:
    def test_p_scores_the_next_tick(self) -> None:
        assert decide(after(*IN_FLIGHT)) == Score(mark(0))
        assert decide(after(*IN_FLIGHT, scored(1, 0.1, 0.2))) == Score(mark(2))

    def test_a_frame_that_p_could_not_score_is_passed_over(self) -> None:
        assert decide(after(*IN_FLIGHT, scored(1, 0.1), invalid("score", "schema", 2))) == Score(mark(2))

    def test_a_high_score_that_stays_is_a_candidate(self) -> None:
        assert decide(after(*IN_FLIGHT, scored(1, 0.2, 0.95))) == Score(mark(2))
        found = decide(after(*IN_FLIGHT, scored(1, 0.2, 0.95, 0.96)))
        assert found == Propose(mark(3), mark(2), 0.96, "high")

    def test_so_is_the_peak_before_a_sustained_drop(self) -> None:
        found = decide(after(*IN_FLIGHT, scored(1, 0.3, 0.8, 0.4, 0.4, 0.4)))
        assert found == Propose(mark(2), mark(1), 0.8, "peak")

    def test_what_was_high_before_a_gap_does_not_count(self) -> None:
        assert decide(after(*IN_FLIGHT, scored(1, 0.95), gap(3), scored(3, 0.95))) == Score(mark(3))

    def test_a_proposal_goes_to_v(self) -> None:
        assert decide(after(*IN_FLIGHT, scored(1, 0.95, 0.95), proposed(2, 1))) == Verify()

    def test_v_that_is_late_is_asked_again(self) -> None:
        asked = [*IN_FLIGHT, *scored(1, 0.95, 0.95), proposed(2, 1)]
        assert decide(after(*asked, invalid("verify", "late", 2))) == Verify()
        assert decide(after(*asked, invalid("verify", "late", 2), invalid("verify", "late", 2))) == Score(mark(2))

    def test_after_a_rejection_p_goes_on(self) -> None:
        assert decide(after(*IN_FLIGHT, turned_down(1))) == Score(mark(1))

    def test_an_accepted_peak_lies_behind_the_ticks_that_were_scored(self) -> None:
        """P scores for the next step what came since, though it has seen it for this one."""
        peak = [*scored(1, 0.3, 0.8, 0.4, 0.4, 0.4), proposed(2, 1), verified(2)]
        assert decide(after(*IN_FLIGHT, peak, begun(2, 2))) == Score(mark(2))


class TestStall:
    def test_seven_rejections_are_not_enough(self) -> None:
        assert decide(after(*IN_FLIGHT, REJECTED_8[:-3])) == Score(mark(7))

    def test_after_eight_rejections_the_step_stalls(self) -> None:
        assert decide(after(*IN_FLIGHT, REJECTED_8)) == Stall()

    def test_p_goes_on(self) -> None:
        assert decide(after(*IN_FLIGHT, REJECTED_8, STALLED)) == Score(mark(8))

    def test_v_is_not_asked_again(self) -> None:
        sure = scored(9, *[1.0] * 40)
        assert decide(after(*IN_FLIGHT, REJECTED_8, STALLED, sure)) == Score(mark(48))

    def test_the_end_of_the_stream_is_no_candidate_then(self) -> None:
        assert decide(after(*IN_FLIGHT, REJECTED_8, STALLED, scored(9, 0.5), over(9))) == End("stalled")

    def test_the_eighth_rejection_may_be_at_the_end(self) -> None:
        at_the_end = [*IN_FLIGHT, *REJECTED_8[:-2], over(8), *REJECTED_8[-2:]]
        assert decide(after(at_the_end)) == Stall()
        assert decide(after(at_the_end, STALLED)) == End("stalled")

    def test_a_step_after_it_has_verifications_of_its_own(self) -> None:
        before = [*IN_FLIGHT, *REJECTED_8[:-3], *completed(9), begun(2, 9)]
        assert decide(after(before, turned_down(10))) == Score(mark(10))


class TestEndOfStream:
    def test_the_newest_frame_is_the_last_candidate(self) -> None:
        found = decide(after(*IN_FLIGHT, scored(1, 0.3, 0.5), over(2)))
        assert found == Propose(mark(2), mark(1), 0.5, "end")

    def test_unless_v_has_seen_it_already(self) -> None:
        assert decide(after(*IN_FLIGHT, scored(1, 0.3), turned_down(2), over(2))) == End("incomplete")

    def test_an_earlier_frame_that_v_has_seen_does_not_matter(self) -> None:
        found = decide(after(*IN_FLIGHT, turned_down(1), scored(2, 0.4), over(2)))
        assert found == Propose(mark(2), mark(1), 0.4, "end")

    def test_a_step_without_a_score_has_no_candidate(self) -> None:
        assert decide(after(*IN_FLIGHT, over(0))) == End("incomplete")

    def test_v_may_still_accept(self) -> None:
        """The last step is completed by the last frame: O reviews the plan though nothing more will come."""
        last = [oriented(0, 1), begun(1, 0), *scored(1, 0.5), over(1), proposed(1), verified(1)]
        assert decide(after(last)) == Review()


class TestReview:
    DONE = (oriented(0, 1), begun(1, 0), completed(1))

    def test_when_all_steps_are_satisfied_o_reviews_the_plan(self) -> None:
        assert decide(after(*self.DONE)) == Review()

    def test_once(self) -> None:
        assert decide(after(*self.DONE, reviewed(1, 1, 1))) == End("done")

    def test_a_step_that_was_omitted_is_next(self) -> None:
        assert decide(after(*self.DONE, reviewed(1, 2, 1, revision=2))) == NextStep()

    def test_after_it_there_is_no_second_review(self) -> None:
        omitted = (reviewed(1, 2, 1, revision=2), oriented(1, 2, 1, revision=2), begun(2, 1), completed(2))
        assert decide(after(*self.DONE, *omitted)) == End("done")

    @pytest.mark.parametrize("trouble", ["schema", "late"])
    def test_two_invalid_reviews_are_the_review(self, trouble: Trouble) -> None:
        asked: Asked = "review"
        assert decide(after(*self.DONE, invalid(asked, trouble, 1))) == Review()
        assert decide(after(*self.DONE, invalid(asked, trouble, 1), invalid(asked, trouble, 1))) == End("done")
