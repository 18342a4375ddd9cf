"""TensorRT Edge-LLM's server under supervision: started, asked for its health, started again when it dies, and stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compass_edge.engines.edgellm.child import Child
from compass_edge.engines.edgellm.launch import Launch
from compass_edge.engines.edgellm.readiness import installed_command_line
from compass_edge.engines.openai.probe import probe
from compass_edge.errors import CompassError

State = Literal["new", "starting", "ready", "resting", "failed", "stopped"]
_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Supervision:
    """`start_s` is long: engines are built at the first start, for many minutes."""

    start_s: float = 3600.0
    look_s: float = 1.0
    rest_s: float = 1.0  # before the first restart; doubled for each more
    longest_rest_s: float = 60.0
    healthy_s: float = 120.0  # a server that was ready for so long starts counting anew
    restarts: int = 5  # in a row
    unhealthy: int = 5  # looks in a row before a server that runs and does not answer is ended
    grace_s: float = 10.0


class EdgeLlmServer:
    """One thread of its own. `start` returns at once; `wait_ready` waits, or says why it will not be."""

    def __init__(
        self, launch: Launch, supervision: Supervision | None = None, *, words: Sequence[str] | None = None
    ) -> None:
        """`words`: the whole command, in place of Edge-LLM's own."""
        self.launch = launch
        self._rules = supervision or Supervision()
        self._words = list(words) if words is not None else launch.words(installed_command_line())
        self._state: State = "new"
        self._why = ""
        self._starts = 0
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._child: Child | None = None

    @property
    def state(self) -> State:
        return self._state

    @property
    def starts(self) -> int:
        return self._starts

    @property
    def pid(self) -> int | None:
        child = self._child
        return child.pid if child is not None and child.running else None

    def start(self) -> None:
        if self._thread is not None:
            raise CompassError("This server was started already. Make another one to start it again.")
        self.launch.check()
        self._set("starting")
        self._thread = threading.Thread(target=self._supervise, name="compass-edgellm", daemon=True)
        self._thread.start()

    def wait_ready(self, seconds: float | None = None) -> None:
        """Raises once it is clear that it will not be ready, or when the time is over."""
        until = time.monotonic() + (self._rules.start_s if seconds is None else seconds)
        with self._changed:
            while self._state != "ready":
                if self._state in ("failed", "stopped", "new"):
                    raise CompassError(self.sentence())
                left = until - time.monotonic()
                if left <= 0:
                    raise CompassError(f"{self.sentence()} The time to wait for it is over.")
                self._changed.wait(min(left, 0.5))

    def stop(self) -> None:
        """Any number of times. Nothing that it has started is left."""
        self._stop.set()
        if (child := self._child) is not None:
            child.ask_to_end()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self._state != "failed":
            self._set("stopped")

    def sentence(self) -> str:
        """What is with it now."""
        name = f"TensorRT Edge-LLM's server for {self.launch.model} at {self.launch.endpoint.url}"
        match self._state:
            case "new":
                return f"{name} has not been started."
            case "starting":
                return f"{name} is starting; at its first start it builds engines, which takes many minutes."
            case "ready":
                return f"{name} is ready."
            case "resting":
                return f"{name} is being started again: {self._why}"
            case "stopped":
                return f"{name} was stopped."
            case _:
                return f"{name} does not run, and is not started again: {self._why}"

    def _set(self, state: State, why: str = "") -> None:
        with self._changed:
            self._state, self._why = state, why
            self._changed.notify_all()

    def _supervise(self) -> None:
        failures = 0
        while not self._stop.is_set():
            ready_for, why = self._one_life()
            if self._stop.is_set():
                return
            failures = 1 if ready_for >= self._rules.healthy_s else failures + 1
            if failures > self._rules.restarts:
                self._set("failed", f"{why} It was tried {failures} times in a row.")
                return
            self._set("resting", why)
            self._stop.wait(min(self._rules.rest_s * 2 ** (failures - 1), self._rules.longest_rest_s))
            if not self._stop.is_set():
                self._set("starting")

    def _one_life(self) -> tuple[float, str]:
        """From start to end: how long it was ready, and how it ended."""
        try:
            child = self._child = Child(self._words)
        except CompassError as error:
            return 0.0, str(error)
        self._starts += 1
        try:
            return self._watched(child)
        finally:
            child.end(self._rules.grace_s)

    def _watched(self, child: Child) -> tuple[float, str]:
        born, ready_at, silent = time.monotonic(), 0.0, 0
        while not self._stop.is_set():
            if child.wait(self._rules.look_s):
                return self._ready_for(ready_at), f"{child.how_it_ended()}. {_said(child.lines)}"
            trouble = probe(self.launch.endpoint).trouble
            if not trouble:
                silent = 0
                if not ready_at:
                    ready_at = time.monotonic()
                    self._set("ready")
                continue
            if not ready_at:
                if time.monotonic() - born > self._rules.start_s:
                    return 0.0, f"it was not ready within {self._rules.start_s:.0f} s. {_said(child.lines)}"
                continue
            silent += 1
            if silent >= self._rules.unhealthy:
                return self._ready_for(ready_at), f"it ran and did not answer any more: {trouble}"
        return self._ready_for(ready_at), "it was stopped."

    @staticmethod
    def _ready_for(ready_at: float) -> float:
        return time.monotonic() - ready_at if ready_at else 0.0


def _said(lines: Sequence[str]) -> str:
    """A server that refuses to start says why in its last line; behind it there may be empty ones."""
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if not last:
        return "It said nothing."
    return f"It said last: {last[:_SHOWN]}" + ("" if last.endswith((".", "!", "?")) else ".")
