"""A stopwatch around models: calls and seconds by role."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.loop.timed import timed


@dataclass(slots=True)
class Stopwatch:
    calls: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, models: Models) -> Models:
        return timed(models, time.perf_counter_ns, self._add)

    def _add(self, role: Role, began_ns: int, calls: int) -> None:
        with self._lock:
            self.calls[role] += calls
            self.seconds[role] = self.seconds.get(role, 0.0) + (time.perf_counter_ns() - began_ns) / 1e9
