"""A draft: what a task writes on a table. The catalogue adds what all episodes have: a look, a manner, a toy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compass_edge.sim.script import Step
from compass_edge.sim.things import Place

PAINTS = ("red", "green", "blue", "yellow", "purple", "orange")
SIDES = ("leftmost", "middle", "rightmost")


@dataclass(frozen=True, slots=True)
class Draft:
    instruction: str
    steps: Sequence[Step]
    places: Sequence[Place]
    switches: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""  # what the instruction asks for beyond its task, such as how often
    retreat: float = 0.5  # how often the hand goes back to where it waits, after a step


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def of(index: int, count: int) -> str:
    """A note that says which occurrence it is, and so how many are done."""
    return f" (number {index} of {count})"
