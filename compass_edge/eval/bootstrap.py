"""The bootstrap: how far a mean, or the difference of two, could lie from what a few episodes show.

What is resampled are clusters of episodes, with all that belongs to them. The episodes of a task are filmed alike and fail
alike, so that a cluster is a task; with fewer than `LEAST` tasks there are too few to resample, and a cluster is an episode.
Two methods are resampled together: of a pair, both come or neither does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compass_edge.errors import UsageError

Values = NDArray[np.float64]
LEAST = 8  # clusters
RESAMPLES = 10_000
LEVEL = 0.95
SEED = 20_260


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval. All are nan if there was nothing to average."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


class Bootstrap:
    """One set of resamples for everything that is compared: the same seed draws the same clusters."""

    def __init__(
        self, tasks: Sequence[str], resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
    ) -> None:
        """`tasks`: of each episode, in the order in which their values will come."""
        if not 0 < level < 1 or resamples < 1:
            raise UsageError(f"A level between 0 and 1 and a resample at least, and {level} and {resamples} came.")
        names, of = np.unique(np.asarray(tasks, dtype=object).astype(str), return_inverse=True)
        self.by = "task" if names.size >= LEAST else "episode"
        self._of = of.reshape(-1) if self.by == "task" else np.arange(len(tasks))
        self.clusters = int(self._of.max(initial=-1)) + 1
        self._tails = [(1 - level) / 2, (1 + level) / 2]
        self._drawn = np.zeros((resamples, self.clusters))  # how often each cluster is in each resample
        if self.clusters:
            even = np.full(self.clusters, 1 / self.clusters)
            self._drawn[:] = np.random.default_rng(seed).multinomial(self.clusters, even, resamples)

    def mean(self, values: Sequence[Values]) -> Estimate:
        """Of all values; `values[i]` are those of episode i: one, or one for each of its steps, or none."""
        sums, counts = self._sums(values)
        drawn = _ratio(self._drawn @ sums, self._drawn @ counts)
        return self._estimate(float(_ratio(sums.sum(), counts.sum())), drawn)

    def difference(self, values: Sequence[Values], others: Sequence[Values]) -> Estimate:
        """Of the mean of the first and the mean of the second."""
        (sums, counts), (other_sums, other_counts) = self._sums(values), self._sums(others)
        drawn = _ratio(self._drawn @ sums, self._drawn @ counts)
        drawn = drawn - _ratio(self._drawn @ other_sums, self._drawn @ other_counts)
        value = _ratio(sums.sum(), counts.sum()) - _ratio(other_sums.sum(), other_counts.sum())
        return self._estimate(float(value), drawn)

    def closed(self, values: Sequence[Values], least: Sequence[Values], reached: Sequence[Values]) -> Estimate:
        """The share of the way from the mean of `values` down to that of `least` that the mean of `reached` has gone."""
        means, drawn = [], []
        for some in (values, least, reached):
            sums, counts = self._sums(some)
            means.append(_ratio(sums.sum(), counts.sum()))
            drawn.append(_ratio(self._drawn @ sums, self._drawn @ counts))
        share = _ratio(means[0] - means[2], means[0] - means[1])
        return self._estimate(float(share), _ratio(drawn[0] - drawn[2], drawn[0] - drawn[1]))

    def _sums(self, values: Sequence[Values]) -> tuple[Values, Values]:
        if len(values) != self._of.size:
            raise UsageError(f"There must be values for each of {self._of.size} episodes, and {len(values)} came.")
        sums, counts = np.zeros(self.clusters), np.zeros(self.clusters)
        np.add.at(sums, self._of, [float(np.sum(one)) for one in values])
        np.add.at(counts, self._of, [float(np.size(one)) for one in values])
        return sums, counts

    def _estimate(self, value: float, drawn: Values) -> Estimate:
        known = drawn[np.isfinite(drawn)]  # a resample may hold nothing to average
        if not known.size:
            return Estimate(value, np.nan, np.nan)
        low, high = np.quantile(known, self._tails)
        return Estimate(value, float(low), float(high))


def _ratio(sums: Values, counts: Values) -> Values:
    """nan where there is nothing to average."""
    found: Values = np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=np.asarray(counts) > 0)
    return found
