"""The agreement of the executors: the same episode run by all three must give the same events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import numpy as np

from compass_edge.data.episode import Episode
from compass_edge.eval.loop_run import Executor, run_loop
from compass_edge.eval.method import Lazy, LoopMethod
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import Result
from compass_edge.loop.call import Models
from compass_edge.loop.events import Event
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State

AGREEMENT = "executors agree"
EXECUTORS: tuple[Executor, ...] = get_args(Executor)


class Agreement:
    """A method whose results have one value: 1 if all executors gave the events of the first, 0 otherwise."""

    name = AGREEMENT

    def __init__(self, make: Callable[[], Models], settings: Settings | None) -> None:
        self._models, self._settings = Lazy(make), settings

    def identity(self) -> Mapping[str, Any]:
        return {**LoopMethod(self._models, self._settings).identity(), "method": self.name, "name": self.name}

    def run(self, episode: Episode) -> tuple[Result, ...]:
        told = [events_of(episode, self._models(), self._settings, executor) for executor in EXECUTORS]
        return (Result(episode.id, self.name, np.array([float(all(one == told[0] for one in told))])),)


def events_of(episode: Episode, models: Models, settings: Settings | None, executor: Executor) -> list[Event]:
    events: list[Event] = []

    def see(event: Event, _state: State) -> None:
        events.append(event)

    run_loop(episode, models, settings, executor, subscribers=(see,))
    return events


def agreed(results: Iterable[Result]) -> Rate:
    mine = [result for result in results if result.method == AGREEMENT]
    return Rate(sum(int(one.values[0]) for one in mine), len(mine))
