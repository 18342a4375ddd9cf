"""The overlapped executor: one live episode, as fresh as its models allow.

While V rules on a candidate, P goes on; as soon as V has written what the candidate frame shows, O is asked for the next
step; as soon as O has written its sentence, P starts on it. Between two frames of the backlog P looks at the newest one.
"""

from __future__ import annotations

from collections.abc import Callable

from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode
from compass_edge.loop.lanes import Lanes
from compass_edge.loop.memo import Speculation
from compass_edge.loop.progress import Progress, progress_of, provisional
from compass_edge.loop.scheduler import Policy, Scheduler
from compass_edge.loop.speculation import Fresh

OnProgress = Callable[[Progress], None]


class Overlapped:
    def __init__(
        self, episode: Episode, lanes: Lanes, models: Models, on_provisional: OnProgress | None = None
    ) -> None:
        self._episode, self._on_provisional = episode, on_provisional
        self._scheduler = Scheduler(lanes, models.max_batch, Policy(fresh=True), self._show)

    def run(self) -> Speculation:
        self._scheduler.run([self._episode])
        return self._scheduler.memo.close()

    def stop(self) -> None:
        """Any thread."""
        self._scheduler.stop()

    @property
    def speculation(self) -> Speculation:
        """What asking early has been worth so far."""
        return self._scheduler.memo.stats

    @property
    def fault(self) -> bool:
        """A model does not answer."""
        return self._scheduler.fault

    def _show(self, episode: Episode, found: Fresh, score: float) -> None:
        """Only while it is still true of the step and the plan that the events tell of."""
        now, then = episode.state, found.state
        if self._on_provisional is None or now.plan is None or then.plan is None:
            return
        if (now.plan.done, now.plan.revision) == (then.plan.done, then.plan.revision):
            phase = progress_of(now).phase
            self._on_provisional(provisional(then, score, found.call.frame, phase))
