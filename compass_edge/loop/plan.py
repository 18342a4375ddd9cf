"""The plan: the outcomes that the instruction requires, in order, one step per occurrence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

# How a step ends: in a state that lasts, in a brief interaction (a button that is pressed), or in something seen.
Completion = Literal["lasting", "brief", "observation"]


@dataclass(frozen=True, slots=True)
class Step:
    id: int  # given once, never used again, whatever becomes of the plan
    outcome: str
    criterion: str  # what can be seen when it is reached
    satisfied: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Satisfied steps come first and never change."""

    steps: tuple[Step, ...]
    revision: int = 1
    issued: int = 0  # the highest id ever given: that of a removed step is not used again

    @property
    def size(self) -> int:
        """K."""
        return len(self.steps)

    @property
    def done(self) -> int:
        return sum(step.satisfied for step in self.steps)

    @property
    def position(self) -> int:
        """k: the step at hand, counted from 1; K + 1 when all are satisfied."""
        return self.done + 1

    @property
    def next_open(self) -> Step | None:
        return next((step for step in self.steps if not step.satisfied), None)

    @property
    def next_id(self) -> int:
        return max(self.issued, *(step.id for step in self.steps), 0) + 1

    def revised(self, steps: tuple[Step, ...]) -> Plan:
        """The next revision; the very same plan when nothing changes."""
        if steps == self.steps:
            return self
        issued = max(self.next_id - 1, *(step.id for step in steps))
        return Plan(steps, self.revision + 1, issued)

    def satisfy(self, step_id: int) -> Plan:
        """The step moves to the end of the satisfied ones; the order of the others stays."""
        accepted = next(step for step in self.steps if step.id == step_id)
        before = [step for step in self.steps if step.satisfied]
        after = [step for step in self.steps if not step.satisfied and step.id != step_id]
        return replace(self, steps=(*before, replace(accepted, satisfied=True), *after))


@dataclass(frozen=True, slots=True)
class Subtask:
    """The context c_t that O gives for the step at hand: what P scores and V checks."""

    sentence: str  # self-contained: object, source, target, completion
    before: str  # what the scene shows now
    tau: str  # the expected transition
    after: str  # what the scene will show
    completion: Completion = "lasting"


@dataclass(frozen=True, slots=True)
class Fact:
    """An entry of the verified memory: what V saw in the frame that completed a step."""

    step_id: int
    text: str
