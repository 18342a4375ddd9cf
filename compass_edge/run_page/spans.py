"""Spans: when each model was at work, measured around its calls."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from compass_edge.frames.native import native
from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.loop.lanes import ROLES
from compass_edge.loop.timed import timed

_MOST = 50_000  # a camera may run for days


@dataclass(frozen=True, slots=True)
class Span:
    role: Role
    began_ns: int
    ended_ns: int
    calls: int


@dataclass(slots=True)
class Spans:
    """Filled from any thread. A model that plays two roles keeps one waiting for the other: that counts too."""

    clock: Callable[[], int] = field(default_factory=lambda: native().monotonic_ns)
    all: deque[Span] = field(default_factory=lambda: deque(maxlen=_MOST))  # the newest
    _busy_ns: Counter[Role] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, models: Models) -> Models:
        return timed(models, self.clock, self.add)

    def add(self, role: Role, began_ns: int, calls: int) -> None:
        span = Span(role, began_ns, self.clock(), calls)
        with self._lock:
            self.all.append(span)
            self._busy_ns[role] += span.ended_ns - span.began_ns

    def busy_s(self) -> dict[Role, float]:
        with self._lock:
            return {role: self._busy_ns[role] / 1e9 for role in ROLES}
