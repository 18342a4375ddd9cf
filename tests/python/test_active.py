"""The step in flight: the frames of it that P and V are shown."""

from __future__ import annotations

import pytest
from story import after, begun, mark, oriented, scored

from compass_edge.errors import UsageError
from compass_edge.loop.middle import MiddleRule
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State, apply

IN_FLIGHT = [oriented(0, 3), begun(1, 0)]


class TestClip:
    """What P is shown of a step: its start, the newest frame, and an even choice between them."""

    @staticmethod
    def ticks(state: State) -> list[int]:
        return [scored.frame.seq // 10 for scored in state.the_step.clip]

    def test_the_stride_doubles_when_the_clip_is_full(self) -> None:
        clips = {
            3: (1, [1, 2, 3]),
            4: (2, [2, 4]),
            5: (2, [2, 4, 5]),
            6: (2, [2, 4, 6]),
            7: (4, [4, 7]),
            8: (4, [4, 8]),
            11: (4, [4, 8, 11]),
            13: (8, [8, 13]),
        }
        for last, (stride, clip) in clips.items():
            state = after(IN_FLIGHT, scored(1, *[0.1] * last), max_frames=4)
            assert (state.the_step.stride, self.ticks(state)) == (stride, clip)

    @pytest.mark.parametrize("most", [4, 5, 16, 128])
    def test_it_is_never_longer_than_it_may_be(self, most: int) -> None:
        state = after(IN_FLIGHT, max_frames=most)
        for event in scored(1, *[0.1] * 300):
            state = apply(state, event)
            assert len(state.the_step.clip) + 1 <= most  # the start is shown too
            assert state.the_step.newest == state.cursor

    def test_it_depends_on_the_frames_alone(self) -> None:
        """A frame that is lost leaves a hole, and the others where they were."""
        whole = after(IN_FLIGHT, scored(1, *[0.1] * 9), max_frames=4)
        holey = after(IN_FLIGHT, scored(1, *[0.1] * 4), scored(6, *[0.1] * 4), max_frames=4)
        assert self.ticks(whole) == self.ticks(holey) == [4, 8, 9]

    def test_it_counts_from_the_start_of_the_step(self) -> None:
        state = after(oriented(3, 1), begun(1, 3), scored(4, *[0.1] * 4), max_frames=4)
        assert self.ticks(state) == [5, 7]


class TestDuring:
    """The middle frame for V."""

    def test_a_lasting_step_is_shown_half_way(self) -> None:
        state = after(IN_FLIGHT, scored(1, 0.1, 0.8, 0.9, 0.9, 0.9))
        assert state.the_step.during(mark(5), MiddleRule()) == mark(3)

    def test_a_brief_one_where_the_curve_rose_most(self) -> None:
        state = after(oriented(0, 1), begun(1, 0, "brief"), scored(1, 0.1, 0.8, 0.9, 0.9, 0.9))
        assert state.the_step.during(mark(5), MiddleRule()) == mark(2)

    def test_without_a_frame_between_it_is_the_start(self) -> None:
        assert after(IN_FLIGHT, scored(1, 0.9)).the_step.during(mark(1), MiddleRule()) == mark(0)

    def test_with_a_score_to_look_for_it_is_the_frame_nearest_to_it(self) -> None:
        state = after(oriented(0, 1), begun(1, 0, "brief"), scored(1, 0.3, 0.7, 0.85, 0.93, 1.0, 1.0))
        assert state.the_step.during(mark(6), MiddleRule(brief=0.92)) == mark(4)
        assert state.the_step.during(mark(6), MiddleRule(brief=0.72)) == mark(2)
        assert state.the_step.during(mark(6), MiddleRule(lasting=0.3)) == mark(2), (
            "of another kind of step: the steepest rise"
        )

    def test_the_later_of_two_that_are_as_near(self) -> None:
        state = after(IN_FLIGHT, scored(1, 0.5, 0.9, 0.9, 0.9, 1.0))
        assert state.the_step.during(mark(5), MiddleRule(lasting=0.9)) == mark(4)

    def test_each_rejection_goes_further_from_the_nearest_earlier_frames_first(self) -> None:
        """A button is down before P is sure; where P is sure its scores are all alike."""
        between = after(IN_FLIGHT, scored(1, 0.2, 0.4, 0.6, 0.91, 0.92, 0.92, 0.92)).the_step.clip
        rule = MiddleRule(brief=0.9)
        tried = [rule.choose(between, "brief", rejections).seq // 10 for rejections in range(9)]
        assert tried == [4, 3, 5, 2, 6, 1, 7, 7, 7]

    def test_of_a_lasting_state_every_fourth_frame_first(self) -> None:
        """Neighbours show the same: a thing is in the hand for many frames."""
        scores = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.95, 0.95, 0.95)
        between = after(IN_FLIGHT, scored(1, *scores)).the_step.clip
        rule = MiddleRule(lasting=0.9)
        tried = [rule.choose(between, "lasting", rejections).seq // 10 for rejections in range(13)]
        assert tried == [8, 4, 12, 7, 9, 3, 6, 10, 2, 5, 11, 1, 1]

    @pytest.mark.parametrize(
        ("values", "said"),
        [({"brief": 2}, "a score above 0"), ({"early": 1}, "no setting 'middle.early'")],
    )
    def test_what_is_no_rule_is_refused(self, values: dict[str, float], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            Settings.from_dict({"middle": values})
