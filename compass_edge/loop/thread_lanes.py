"""Lanes on threads: the real clock, real models, a worker for each job that a model takes at once."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType

from compass_edge.frames.native import native
from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.loop.lanes import ROLES, Finished, Job, Limits, Signal, Streamed, answer, late
from compass_edge.roles.fields import Fields

# Whoever waits looks around again after so long, even if every model hangs.
LONGEST_WAIT_NS = 250_000_000


@dataclass(slots=True, eq=False)
class _Running:
    job: Job
    deadline_ns: int
    given_up: threading.Event = field(default_factory=threading.Event)


class ThreadLanes:
    """A job past its deadline is reported as late at once; its worker is free again when the model returns.

    A model that never returns keeps its worker: nothing can stop a thread from outside, and a second call beside the first
    could corrupt a model that takes one at a time. The circuit breaker keeps the loop from queueing behind it.
    """

    def __init__(self, models: Models, limits: Limits | None = None) -> None:
        self._models, self._limits = models, limits or Limits()
        self._clock: Callable[[], int] = native().monotonic_ns
        self._signals: queue.SimpleQueue[tuple[_Running, Signal] | None] = queue.SimpleQueue()
        self._work: dict[Role, queue.SimpleQueue[_Running | None]] = {role: queue.SimpleQueue() for role in ROLES}
        self._running: list[_Running] = []
        self._threads = [
            threading.Thread(target=self._serve, args=(role,), name=f"compass-{role}-{n}", daemon=True)
            for role in ROLES
            for n in range(self._limits.at_once[role])
        ]
        for thread in self._threads:
            thread.start()

    def now_ns(self) -> int:
        return self._clock()

    def room(self, role: Role) -> int:
        return self._limits.at_once[role] - sum(running.job.role == role for running in self._running)

    def stuck(self, role: Role) -> bool:
        now = self._clock()
        return any(running.job.role == role and now > running.deadline_ns for running in tuple(self._running))

    def start(self, job: Job) -> None:
        running = _Running(job, self._clock() + round(self._limits.deadline_s[job.role] * 1e9))
        self._running.append(running)
        self._work[job.role].put(running)

    def cancel(self, job: Job) -> None:
        for running in self._running:
            if running.job is job:
                running.given_up.set()

    def wake(self) -> None:
        """Any thread: ends the current wait, or the next one."""
        self._signals.put(None)

    def wait(self, until_ns: int | None) -> list[Signal]:
        signals = self._expired()
        if not signals and (self._running or until_ns is not None):
            times = [running.deadline_ns for running in self._running if not running.given_up.is_set()]
            times.append(self._clock() + LONGEST_WAIT_NS if until_ns is None else until_ns)
            with contextlib.suppress(queue.Empty):
                signals += self._take(timeout_s=max(min(times) - self._clock(), 0) / 1e9)
        with contextlib.suppress(queue.Empty):
            while True:
                signals += self._take(timeout_s=0)
        return signals + self._expired()

    def close(self) -> None:
        """Lets the workers go. One that a model holds on to ends with the process."""
        for running in self._running:
            running.given_up.set()
        for role in ROLES:
            for _ in range(self._limits.at_once[role]):
                self._work[role].put(None)
        for thread in self._threads:
            thread.join(timeout=1.0)

    def __enter__(self) -> ThreadLanes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, timeout_s: float | None) -> list[Signal]:
        taken = self._signals.get_nowait() if timeout_s == 0 else self._signals.get(timeout=timeout_s)
        if taken is None:
            return []
        running, signal = taken
        if isinstance(signal, Finished):
            self._running.remove(running)
        return [] if running.given_up.is_set() else [signal]

    def _expired(self) -> list[Signal]:
        now, signals = self._clock(), list[Signal]()
        for running in self._running:
            if now >= running.deadline_ns and not running.given_up.is_set():
                running.given_up.set()
                role = running.job.role
                reply = late(role, self._limits.deadline_s[role])
                signals.append(Finished(running.job, tuple(reply for _ in running.job.calls)))
        return signals

    def _serve(self, role: Role) -> None:
        while (running := self._work[role].get()) is not None:
            scanners = [Fields() for _ in running.job.calls]
            on_text = partial(self._stream, running, scanners)
            replies = answer(self._models, running.job, on_text, running.given_up.is_set)
            self._signals.put((running, Finished(running.job, replies)))

    def _stream(self, running: _Running, scanners: list[Fields], index: int, text: str) -> None:
        for name, value in scanners[index].feed(text):
            self._signals.put((running, Streamed(running.job, running.job.calls[index], name, value)))
