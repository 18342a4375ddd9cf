"""The overlapped executor: one live episode, as fresh as its models allow.

While V rules on a candidate, P goes on; as soon as V has written what the candidate frame shows, O is asked for the next
step; as soon as O has written its sentence, P starts on it. Between two frames of the backlog P looks at the newest one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Event
from compass_edge.loop.freshness import Fresh
from compass_edge.loop.lanes import Lanes
from compass_edge.loop.memo import Speculation
from compass_edge.loop.progress import Progress, progress_of, provisional
from compass_edge.loop.scheduler import Policy, Scheduler
from compass_edge.loop.state import State

OnProgress = Callable[[Progress], None]


class Overlapped:
    def __init__(
        self, episode: Episode, lanes: Lanes, models: Models, on_provisional: OnProgress | None = None
    ) -> None:
        self._episode, self._on_provisional = episode, on_provisional or (lambda progress: None)
        self._ahead: deque[tuple[Fresh, float]] = deque(maxlen=4)  # P has seen, and it cannot be shown yet
        self._scheduler = Scheduler(lanes, models.max_batch, Policy(fresh=True), self._on_fresh)
        episode.subscribe(self._show)

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

    def _on_fresh(self, _episode: Episode, found: Fresh, score: float) -> None:
        self._ahead.append((found, score))
        self._show()

    def _show(self, _event: Event | None = None, _state: State | None = None) -> None:
        """What is true of the step and the plan that the events tell of. The rest may become so with the next verdict."""
        now = self._episode.state
        for found, score in tuple(self._ahead):
            plan = found.state.plan
            if plan is None or now.plan is None or (plan.done, plan.revision) < (now.plan.done, now.plan.revision):
                self._ahead.remove((found, score))
            elif (plan.done, plan.revision) == (now.plan.done, now.plan.revision):
                self._ahead.remove((found, score))
                phase = progress_of(now).phase
                self._on_provisional(provisional(found.state, score, found.call.frame, phase))
