"""The memo: what calls made early were worth."""

from __future__ import annotations

from compass_edge.loop.call import Call, Failure
from compass_edge.loop.mark import Mark
from compass_edge.loop.memo import Memo
from compass_edge.models import Clip, Image


def score(key: str = "p") -> Call:
    return Call("prm", "score", Clip("do it", (Image("i"),)), Mark(0, 0), key)


class TestMemo:
    def test_an_early_call_that_is_asked_for_is_a_hit_and_saves_the_waiting(self) -> None:
        memo = Memo()
        memo.begin(score(), 10, "early")
        memo.finish("p", 0.5, 40)
        assert memo.ask("p", 100) == 0.5
        memo.ask("p", 110)
        stats = memo.close()
        assert (stats.started, stats.hits, stats.wasted, stats.saved_ns) == (1, 1, 0, 30)
        assert stats.hit_rate == 1

    def test_asked_for_while_it_is_on_its_way(self) -> None:
        memo = Memo()
        memo.begin(score(), 10, "early")
        assert memo.ask("p", 25) is None
        memo.finish("p", 0.5, 40)
        assert memo.ask("p", 40) == 0.5
        assert memo.close().saved_ns == 15

    def test_what_nobody_asks_for_is_waste(self) -> None:
        memo = Memo()
        memo.begin(score("a"), 0, "early")
        memo.finish("a", 0.5, 7)
        memo.begin(score("b"), 0, "early")
        memo.cancel("b", 5)
        stats = memo.close()
        assert (stats.wasted, stats.cancelled, stats.wasted_ns, stats.hit_rate) == (2, 1, 12, 0)

    def test_a_score_for_display_counts_only_if_it_was_of_use(self) -> None:
        memo = Memo()
        for key in ("a", "b"):
            memo.begin(score(key), 0, "shown")
            memo.finish(key, 0.5, 7)
        memo.ask("a", 7)
        stats = memo.close()
        assert (stats.shown, stats.started, stats.hits, stats.wasted) == (2, 1, 1, 0)

    def test_a_failure_is_handed_out_once_so_that_the_next_attempt_is_real(self) -> None:
        memo = Memo()
        memo.begin(score(), 0, "needed")
        memo.finish("p", Failure("late", "too late"), 7)
        assert memo.ask("p", 7) == Failure("late", "too late")
        assert not memo.known("p")
        assert memo.ask("p", 8) is None

    def test_it_is_bounded_and_keeps_what_is_on_its_way(self) -> None:
        memo = Memo(max_entries=3)
        memo.begin(score("running"), 0, "needed")
        for number in range(10):
            memo.begin(score(str(number)), 0, "early")
            memo.finish(str(number), 0.5, 1)
        assert memo.pending("running")
        assert sum(memo.known(str(number)) for number in range(10)) <= 3
        assert memo.known("9")
