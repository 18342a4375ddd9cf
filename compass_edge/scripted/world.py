"""A scripted world: what happens when, in ticks, and what the instruction says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compass_edge.models import Image


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that the robot does: under way from tick `begin`, done from tick `end` on."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class StepScript:
    """A step of the plan as O will put it, and the happening that completes it."""

    id: int
    happening: str
    outcome: str
    criterion: str
    sentence: str
    tau: str = ""
    completion: str = "lasting"


@dataclass(frozen=True, slots=True)
class Fault:
    """A reply that goes wrong whenever the newest frame of a call lies in these ticks."""

    role: str
    first: int
    last: int
    reply: str  # the text or number itself; or "late", or "raise"
    asked: str = ""  # first, next, review, score or verify; empty for any


@dataclass(frozen=True, slots=True)
class World:
    name: str
    instruction: str
    ticks: int
    happenings: tuple[Happening, ...]
    steps: tuple[StepScript, ...]
    plan: tuple[int, ...]  # ids of the steps of the first plan
    objects: Mapping[str, int] = field(default_factory=dict)
    grounded_from: int | None = 0  # the tick from which O finds the objects; None: never
    edits: Mapping[int, list[dict[str, Any]]] = field(default_factory=dict)  # by the step that was next
    describes: Mapping[int, int] = field(default_factory=dict)  # after such edits: the step that is next then
    omitted: tuple[int, ...] = ()  # steps that only the review finds
    faults: tuple[Fault, ...] = ()
    missing: tuple[int, ...] = ()  # ticks that never come
    every: int = 10
    fps: float = 30.0

    def step(self, step_id: int) -> StepScript:
        return next(step for step in self.steps if step.id == step_id)

    def image(self, tick: int) -> Image:
        return Image(f"{self.name}/{tick}", tick)

    def fraction(self, name: str, since: int, tick: int) -> float:
        """How far, at `tick`, the first such happening is that was not over at `since`."""
        found = next((one for one in self.happenings if one.name == name and one.end > since), None)
        if found is None or tick <= found.begin:
            return 0.0
        return min((tick - found.begin) / (found.end - found.begin), 1.0)

    def seen(self, tick: int) -> str:
        """What a frame shows, in words."""
        done = [one.name for one in self.happenings if one.end <= tick]
        busy = [one.name for one in self.happenings if one.begin < tick < one.end]
        told = f"{done.count(done[-1])} x {done[-1]} done" if done else "nothing done yet"
        return f"{told}; {busy[0]} under way" if busy else told
