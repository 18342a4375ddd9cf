"""The age of what is published: how old the newest frame behind it is, for a robot's program that reads it at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from compass_edge.loop.publisher import Publisher

_PERIOD_S = 0.05


class AgeSampler:
    """Reads the publisher every 50 ms from a thread of its own, while there is something to estimate and frames come.

    From the first plan to the verdict on the last step, or to the end of the stream.
    """

    def __init__(self, publisher: Publisher, clock: Callable[[], int], over: Callable[[], bool]) -> None:
        self.ages_s: list[float] = []
        self._publisher, self._clock, self._over = publisher, clock, over
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="compass-age", daemon=True)

    def __enter__(self) -> AgeSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def summary(self) -> dict[str, float] | None:
        if not self.ages_s:
            return None
        ages = sorted(self.ages_s)
        share = {"median": 0.5, "p95": 0.95}
        return {name: ages[min(int(part * len(ages)), len(ages) - 1)] for name, part in share.items()}

    def _sample(self) -> None:
        while not self._stopping.wait(_PERIOD_S) and not self._over():
            latest = self._publisher.latest
            if latest is not None and latest.outcome is None and latest.steps and latest.verified < 100:
                self.ages_s.append(latest.age_s(self._clock()))
