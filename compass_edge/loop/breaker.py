"""A circuit breaker for each model: after failures in a row it is left alone for a while, then tried once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Breaker:
    """A model that answers nonsense is up; only one that is late or raises counts. Times are the lanes'."""

    failures: int = 3
    rest_ns: int = 5_000_000_000
    in_a_row: int = 0
    closed_again_ns: int = 0

    def record(self, failed: bool, now_ns: int) -> None:
        self.in_a_row = self.in_a_row + 1 if failed else 0
        if self.in_a_row >= self.failures:
            self.closed_again_ns = now_ns + self.rest_ns

    def is_open(self, now_ns: int) -> bool:
        return self.in_a_row >= self.failures and now_ns < self.closed_again_ns

    @property
    def tripped(self) -> bool:
        """Open, or being tried again."""
        return self.in_a_row >= self.failures
