"""The pool executor: many episodes at once, so that a model idle for one episode serves another."""

from __future__ import annotations

from collections.abc import Iterable

from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode
from compass_edge.loop.lanes import Lanes
from compass_edge.loop.memo import Speculation
from compass_edge.loop.scheduler import Policy, Scheduler


def run_pool(
    episodes: Iterable[Episode], lanes: Lanes, models: Models, *, at_once: int = 5, speculate: bool = True
) -> Speculation:
    """Runs them all, `at_once` at a time. Episodes are taken from the iterable as room appears: it may be a generator."""
    scheduler = Scheduler(lanes, models.max_batch, Policy(at_once=at_once, speculate=speculate))
    scheduler.run(episodes)
    return scheduler.memo.close()
