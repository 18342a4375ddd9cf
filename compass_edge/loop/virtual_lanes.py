"""Lanes in virtual time: models answer at once, and the clock is moved as if they had taken their time.

Exact and repeatable: for proving executors equal, and for measuring schedules with published latencies.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from compass_edge.loop.call import Models, Reply
from compass_edge.loop.events import Role
from compass_edge.loop.lanes import Finished, Job, Limits, Signal, Streamed, answer, late
from compass_edge.roles.fields import Fields

# Nanoseconds that a job takes, and the share of them before the first token.
Latency = Callable[[Job], int]
PREFILL_SHARE = 0.1


@dataclass(slots=True)
class _Running:
    job: Job
    started_ns: int


class VirtualLanes:
    """`pace` lets a person watch: so many virtual seconds pass in a real one."""

    def __init__(
        self, models: Models, latency: Latency, limits: Limits | None = None, pace: float | None = None
    ) -> None:
        self._models, self._latency, self._limits, self._pace = models, latency, limits or Limits(), pace
        self._now_ns = 0
        self._order = itertools.count()
        self._signals: list[tuple[int, int, Signal]] = []
        self._running: dict[int, _Running] = {}
        self.busy_ns: Counter[Role] = Counter()

    def now_ns(self) -> int:
        return self._now_ns

    def room(self, role: Role) -> int:
        return self._limits.at_once[role] - sum(running.job.role == role for running in self._running.values())

    def stuck(self, _role: Role) -> bool:
        return False

    def start(self, job: Job) -> None:
        self._running[id(job)] = _Running(job, self._now_ns)
        allowed = round(self._limits.deadline_s[job.role] * 1e9)
        took = self._latency(job)
        if took > allowed:
            replies: tuple[Reply, ...] = tuple(late(job.role, allowed / 1e9) for _ in job.calls)
            self._schedule(self._now_ns + allowed, Finished(job, replies))
            return
        replies = answer(self._models, job, lambda index, text: None, lambda: False)
        for call, reply in zip(job.calls, replies, strict=True):
            if isinstance(reply, str):
                self._stream(Streamed(job, call, "", None), reply, took)
        self._schedule(self._now_ns + took, Finished(job, replies))

    def cancel(self, job: Job) -> None:
        running = self._running.pop(id(job), None)
        if running is not None:
            self.busy_ns[job.role] += self._now_ns - running.started_ns

    def wait(self, until_ns: int | None) -> list[Signal]:
        while self._signals and id(self._signals[0][2].job) not in self._running:
            heapq.heappop(self._signals)  # of a cancelled job
        due = self._signals[0][0] if self._signals else None
        if due is None or (until_ns is not None and until_ns < due):
            self._move_to(self._now_ns if until_ns is None else until_ns)
            return []
        self._move_to(due)
        signals: list[Signal] = []
        while self._signals and self._signals[0][0] <= due:
            signal = heapq.heappop(self._signals)[2]
            running = self._running.get(id(signal.job))
            if running is None:
                continue
            if isinstance(signal, Finished):
                del self._running[id(signal.job)]
                self.busy_ns[signal.job.role] += self._now_ns - running.started_ns
            signals.append(signal)
        return signals

    def _stream(self, signal: Streamed, text: str, took_ns: int) -> None:
        fields = Fields()
        for place, letter in enumerate(text):
            for name, value in fields.feed(letter):
                share = PREFILL_SHARE + (1 - PREFILL_SHARE) * (place + 1) / len(text)
                self._schedule(self._now_ns + int(took_ns * share), Streamed(signal.job, signal.call, name, value))

    def _schedule(self, at_ns: int, signal: Signal) -> None:
        heapq.heappush(self._signals, (at_ns, next(self._order), signal))

    def _move_to(self, at_ns: int) -> None:
        if at_ns > self._now_ns:
            if self._pace is not None:
                time.sleep((at_ns - self._now_ns) / 1e9 / self._pace)
            self._now_ns = at_ns
