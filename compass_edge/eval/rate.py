"""A rate: how often of how many times, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Rate:
    hits: int = 0
    of: int = 0

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.hits + other.hits, self.of + other.of)

    @property
    def value(self) -> float:
        """nan if it was never tried."""
        return self.hits / self.of if self.of else math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Wilson's, which also holds near 0 and 1."""
        if not self.of:
            return 0.0, 1.0
        z = NormalDist().inv_cdf((1 + level) / 2)
        centre = (self.value + z * z / (2 * self.of)) / (1 + z * z / self.of)
        spread = self.value * (1 - self.value) / self.of + z * z / (4 * self.of * self.of)
        half = z * math.sqrt(spread) / (1 + z * z / self.of)
        low, high = max(centre - half, 0.0), min(centre + half, 1.0)
        return low if self.hits else 0.0, high if self.hits < self.of else 1.0  # rounding must not shut out what came
