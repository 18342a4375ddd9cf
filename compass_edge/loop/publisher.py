"""The publisher: the newest progress, for readers in any thread, never going back to an older frame of the same step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compass_edge.loop.events import Event
from compass_edge.loop.progress import Phase, Progress, progress_of
from compass_edge.loop.state import State


class Publisher:
    """Fed by the executor's thread: `committed` with its events, `provisional` with what P sees ahead of them.

    `fault` tells of a model that does not answer: its circuit breaker is open.
    """

    def __init__(
        self, on_progress: Callable[[Progress], None] | None = None, fault: Callable[[], bool] = lambda: False
    ) -> None:
        self.latest: Progress | None = None
        self.fault = fault
        self._on_progress = on_progress

    def read(self, now_ns: int, max_age_s: float) -> Progress | None:
        """Any thread, never waits: what holds now. None before the first frame."""
        latest = self.latest
        if latest is None or latest.outcome is not None:
            return latest
        return replace(latest, phase=Phase.FAULT) if self.fault() else latest.at(now_ns, max_age_s)

    def committed(self, _event: Event, state: State) -> None:
        """A subscriber of the episode. While the events catch up with what was shown already, only the rest is news."""
        now, shown = progress_of(state), self.latest
        if shown is not None and now.outcome is None and _same_step(now, shown) and now.frame < shown.frame:
            now = replace(shown, phase=now.phase, verified=now.verified)
        self._publish(now)

    def provisional(self, progress: Progress) -> None:
        if self.latest is None or progress.frame > self.latest.frame or not _same_step(progress, self.latest):
            self._publish(progress)

    def _publish(self, progress: Progress) -> None:
        if progress != self.latest:
            self.latest = progress
            if self._on_progress is not None:
                self._on_progress(progress)


def _same_step(one: Progress, other: Progress) -> bool:
    return (one.step, one.steps, one.revision) == (other.step, other.steps, other.revision)
