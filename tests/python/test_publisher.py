"""The publisher: the newest progress, and what holds when it is read."""

from __future__ import annotations

from typing import Any

from compass_edge.loop.progress import Phase, Progress
from compass_edge.loop.publisher import Publisher

SECOND = 10**9


def progress(frame: int, value: float, step: int = 1, **changes: Any) -> Progress:
    defaults = {"verified": 0.0, "local": 0.5, "steps": 2, "revision": 1, "phase": Phase.TRACKING}
    return Progress(value=value, step=step, frame=frame, captured_ns=frame * SECOND, **{**defaults, **changes})


class TestPublisher:
    def test_never_back_to_an_older_frame_of_the_same_step(self) -> None:
        publisher = Publisher()
        publisher.provisional(progress(9, 40.0))
        publisher.provisional(progress(5, 30.0))
        assert publisher.latest == progress(9, 40.0)
        publisher.provisional(progress(5, 60.0, step=2))  # another step: whatever its frame
        assert publisher.latest == progress(5, 60.0, step=2)

    def test_what_is_read_says_how_old_it_is(self) -> None:
        publisher = Publisher()
        assert publisher.read(0, 2.0) is None
        publisher.provisional(progress(1, 40.0))
        fresh, stale = publisher.read(2 * SECOND, 2.0), publisher.read(4 * SECOND, 2.0)
        assert fresh is not None
        assert stale is not None
        assert (fresh.phase, stale.phase) == (Phase.TRACKING, Phase.STALE)
        assert stale.age_s(4 * SECOND) == 3.0

    def test_a_model_that_does_not_answer_is_a_fault(self) -> None:
        publisher = Publisher(fault=lambda: True)
        publisher.provisional(progress(1, 40.0))
        now = publisher.read(SECOND, 2.0)
        assert now is not None
        assert now.phase is Phase.FAULT
