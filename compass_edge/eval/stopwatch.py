"""A stopwatch around models: calls and seconds by role. What they answer, and their names, stay as they are."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.models import Cancelled, Clip, OnText, ProgressModel, Question, VisionLanguageModel


@dataclass(slots=True)
class Stopwatch:
    calls: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def around(self, models: Models) -> Models:
        return Models(
            _Talker(self, "orienter", models.orienter),
            _Scorer(self, models.prm),
            _Talker(self, "verifier", models.verifier),
        )

    def add(self, role: Role, calls: int, since: float) -> None:
        """Any thread."""
        with self._lock:
            self.calls[role] += calls
            self.seconds[role] = self.seconds.get(role, 0.0) + time.perf_counter() - since


@dataclass(frozen=True, slots=True)
class _Scorer:
    watch: Stopwatch
    model: ProgressModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_batch(self) -> int:
        return self.model.max_batch

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        since = time.perf_counter()
        try:
            return self.model.score(clips)
        finally:
            self.watch.add("prm", len(clips), since)


@dataclass(frozen=True, slots=True)
class _Talker:
    watch: Stopwatch
    role: Role
    model: VisionLanguageModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_batch(self) -> int:
        return self.model.max_batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        since = time.perf_counter()
        try:
            return self.model.ask(questions, on_text, cancelled)
        finally:
            self.watch.add(self.role, len(questions), since)
