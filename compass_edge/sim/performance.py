"""A performance: a script carried out by the arm, the shots of it, and where each step was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from compass_edge.sim.arm import Arm
from compass_edge.sim.dice import Dice
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot, state_hash
from compass_edge.sim.world import World


@dataclass(slots=True)
class Performance:
    script: Script
    shots: list[Shot] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # the frame at which each step is done

    @property
    def complete(self) -> bool:
        return len(self.ends) == len(self.script.steps)

    def add(self, shot: Shot) -> None:
        self.shots.append(shot)
        if not self.complete:
            since = self.ends[-1] if self.ends else 0
            if self.script.steps[len(self.ends)].act.done(self.shots[since:]):
                self.ends.append(len(self.shots) - 1)

    def state_hash(self) -> str:
        return state_hash(self.shots)


def perform(script: Script, assets: Path, on_frame: Callable[[World], None] | None = None) -> Performance:
    """`on_frame` sees the world at every frame, to draw it."""
    performance = Performance(script)

    def on_shot(shot: Shot) -> None:
        performance.add(shot)
        if on_frame is not None:
            on_frame(world)

    world = World(script.things, script.look, assets, on_shot, script.switches)
    arm = Arm(world, script.manner, Dice(script.task, script.seed, "motion"))
    world.shine(None)
    arm.ready()
    arm.wait(0.3)
    for step in script.steps:
        arm.dawdle()
        step.act.do(arm)
        arm.retreat()
    arm.ready()
    arm.wait(0.6)
    return performance
