"""The episodes of the loop's benchmark: scripted worlds of given sizes, and models that answer for many of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from compass_edge.scripted.models import scripted_models
from compass_edge.scripted.world import Fault, Happening, StepScript, World

PAPER_EPISODES, PAPER_STEPS, PAPER_FRAMES = 120, 552, 71_708
REJECTED = 0.15  # of true completions, at first sight: V is not perfect


def make_world(seed: int, steps: int, ticks_a_step: tuple[int, int], every: int) -> World:
    dice = random.Random(seed)
    happenings, scripts, faults, tick = [], [], [], dice.randint(1, 3)
    for number in range(1, steps + 1):
        length = dice.randint(*ticks_a_step)
        begin, end = tick + max(length // 8, 1), tick + max(length * 3 // 4, 2)
        happenings.append(Happening(f"act {number}", begin, end))
        scripts.append(StepScript(number, f"act {number}", f"outcome {number}", f"sign {number}", f"do act {number}"))
        if dice.random() < REJECTED:
            faults.append(Fault("verifier", end - 1, end + 1, _rejection(number)))
        tick += length
    ids = tuple(range(1, steps + 1))
    return World(
        f"bench {seed}", f"task {seed}", tick + 2, tuple(happenings), tuple(scripts), ids, {"thing": 1},
        faults=tuple(faults), every=every,
    )  # fmt: skip


def _rejection(step: int) -> str:
    seen = {"start": "before", "during": "under way", "candidate": f"act {step} may be done", "change": "unclear"}
    return json.dumps({**seen, "count_start": None, "count_candidate": None, "verdict": "uncertain"})


class Union:
    """One set of models for many worlds: each call is answered by the world that its frames come from."""

    def __init__(self, worlds: Sequence[World], role: str) -> None:
        self._models = {world.name: getattr(scripted_models(world), role) for world in worlds}
        self.name, self.max_batch = f"scripted-{role}", 1

    def _of(self, image: Any) -> Any:
        return self._models[image.digest.rsplit("/", 1)[0]]

    def score(self, clips: Any) -> list[float]:
        return [self._of(clip.frames[0]).score([clip])[0] for clip in clips]

    def ask(self, questions: Any, on_text: Any, cancelled: Any) -> list[str]:
        image = (next(part for part in question.parts if not isinstance(part, str)) for question in questions)
        return [self._of(one).ask([q], on_text, cancelled)[0] for one, q in zip(image, questions, strict=True)]


def paper_worlds(episodes: int) -> list[World]:
    """As many episodes, steps and frames as the paper's benchmark has, spread at random."""
    dice = random.Random(2027)
    mean_steps, mean_ticks = PAPER_STEPS / PAPER_EPISODES, PAPER_FRAMES / PAPER_EPISODES / 10
    worlds = []
    for seed in range(episodes):
        steps = min(max(round(dice.gauss(mean_steps, 1.5)), 2), 9)
        a_step = mean_ticks / mean_steps
        worlds.append(make_world(1000 + seed, steps, (round(a_step * 0.5), round(a_step * 1.5)), 10))
    return worlds
