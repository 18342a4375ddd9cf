"""The pool executor: many episodes at once, so that a model idle for one episode serves another."""

from __future__ import annotations

from collections.abc import Iterable

from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode
from compass_edge.loop.lanes import Lanes
from compass_edge.loop.memo import Speculation
from compass_edge.loop.scheduler import Policy, Scheduler

# Episodes behind those in flight whose first calls may be made early.
COMING = 3


def run_pool(
    episodes: Iterable[Episode],
    lanes: Lanes,
    models: Models,
    *,
    at_once: int = 5,
    speculate: bool = True,
    coming: int = COMING,
) -> Speculation:
    """Runs them all, `at_once` at a time. They are taken from the iterable as room appears: it may be a generator.

    A lane with nothing to do for those in flight makes the first calls of the next ones, `coming` at most. Nothing is imagined that is
    unlikely: with other episodes to serve, a model's time is worth more than the waiting it might save.
    """
    ahead = coming if speculate else 0
    policy = Policy(at_once, speculate, ticks_ahead=models.max_batch("prm") - 1, doubts=False, coming=ahead)
    scheduler = Scheduler(lanes, models.max_batch, policy)
    scheduler.run(episodes)
    return scheduler.memo.close()
