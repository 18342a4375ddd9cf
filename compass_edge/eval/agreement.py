"""The agreement of the executors: the same episode run by all three must give the same events.

Scores may differ in their last bits: an engine that finds the beginning of a clip in its memory reads the rest in other passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from compass_edge.data.episode import Episode
from compass_edge.eval.loop_run import Executor, run_loop
from compass_edge.eval.method import Lazy, LoopMethod
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import Result
from compass_edge.loop.call import Models
from compass_edge.loop.events import CompletionProposed, Event, FrameScored
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State

AGREEMENT = "executors agree"
_ROUNDING = 1e-4  # of int8 engines, which round a token by its own largest number
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
        return (Result(episode.id, self.name, np.array([float(all(alike(one, told[0]) for one in told))])),)


def events_of(episode: Episode, models: Models, settings: Settings | None, executor: Executor) -> list[Event]:
    events: list[Event] = []

    def see(event: Event, _state: State) -> None:
        events.append(event)

    run_loop(episode, models, settings, executor, subscribers=(see,))
    return events


def alike(some: Sequence[Event], others: Sequence[Event]) -> bool:
    """The same events, with the same scores to rounding."""
    return len(some) == len(others) and all(_same(one, other) for one, other in zip(some, others, strict=True))


def _same(one: Event, other: Event) -> bool:
    if isinstance(one, FrameScored | CompletionProposed) and isinstance(other, type(one)):
        return abs(one.score - other.score) < _ROUNDING and replace(one, score=0.0) == replace(other, score=0.0)
    return one == other


def agreed(results: Iterable[Result]) -> Rate:
    mine = [result for result in results if result.method == AGREEMENT]
    return Rate(sum(int(one.values[0]) for one in mine), len(mine))
