"""Spans: when each model was at work, measured around its calls. What models answer, and their names, stay as they are."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from compass_edge.frames.native import native
from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.loop.lanes import ROLES
from compass_edge.models import Cancelled, Clip, OnText, ProgressModel, Question, VisionLanguageModel

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
        return Models(
            _Talker(self, "orienter", models.orienter),
            _Scorer(self, models.prm),
            _Talker(self, "verifier", models.verifier),
        )

    def add(self, role: Role, began_ns: int, calls: int) -> None:
        span = Span(role, began_ns, self.clock(), calls)
        with self._lock:
            self.all.append(span)
            self._busy_ns[role] += span.ended_ns - span.began_ns

    def busy_s(self) -> dict[Role, float]:
        with self._lock:
            return {role: self._busy_ns[role] / 1e9 for role in ROLES}


@dataclass(frozen=True, slots=True)
class _Scorer:
    spans: Spans
    model: ProgressModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_batch(self) -> int:
        return self.model.max_batch

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        began_ns = self.spans.clock()
        try:
            return self.model.score(clips)
        finally:
            self.spans.add("prm", began_ns, len(clips))


@dataclass(frozen=True, slots=True)
class _Talker:
    spans: Spans
    role: Role
    model: VisionLanguageModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_batch(self) -> int:
        return self.model.max_batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        began_ns = self.spans.clock()
        try:
            return self.model.ask(questions, on_text, cancelled)
        finally:
            self.spans.add(self.role, began_ns, len(questions))
