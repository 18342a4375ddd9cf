"""The speed of the whole loop: seconds of film a second of computing, on this machine, as it is loaded now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from compass_edge.data.episode import Episode
from compass_edge.eval.loop_run import run_loop
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings

THREADS = 2
EPISODES = 5


@dataclass(frozen=True, slots=True)
class Speed:
    """`film_s` and `computing_s` are of all episodes together."""

    episodes: int
    threads: int
    film_s: float
    computing_s: float  # decoding, preprocessing and all models
    slowest: float  # factor of the slowest episode
    median: float

    @property
    def factor(self) -> float:
        return self.film_s / self.computing_s


def measure_speed(
    episodes: Sequence[Episode],
    models: Models,
    settings: Settings | None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Speed:
    """One after the other, in this process. The first is run once before: what is made or loaded once does not count."""
    run_loop(episodes[0], models, settings)
    spent: list[float] = []
    for episode in episodes:
        on_progress(len(spent) + 1, len(episodes) + 1)
        since = time.perf_counter()
        run_loop(episode, models, settings)
        spent.append(time.perf_counter() - since)
    film = [episode.frames / episode.fps for episode in episodes]
    factors = [shown / took for shown, took in zip(film, spent, strict=True)]
    return Speed(len(episodes), THREADS, sum(film), sum(spent), min(factors), median(factors))


def spread(episodes: Sequence[Episode], count: int = EPISODES) -> list[Episode]:
    """So many of them, evenly over the order in which they come."""
    if len(episodes) <= count:
        return list(episodes)
    return [episodes[at * len(episodes) // count] for at in range(count)]
