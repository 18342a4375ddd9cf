"""Episodes of training seeds, played without pictures: as much of a film as most tests need."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from compass_edge.sim.assets import panda_assets
from compass_edge.sim.performance import perform
from training.footage import EVERY, SIDE, Footage, training_script


@lru_cache(maxsize=32)
def played(task: str, seed: int = 10_000) -> Footage:
    performance = perform(training_script(task, seed), panda_assets())
    frames = list(range(0, len(performance.shots), EVERY))
    blank = np.broadcast_to(np.zeros((1, SIDE, SIDE, 3), np.uint8), (len(frames), SIDE, SIDE, 3))
    none = np.zeros((0,), np.uint8)
    return Footage(performance.script, performance.shots, performance.ends, frames, blank, none, none)
