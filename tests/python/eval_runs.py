"""Many small episodes, and the loop on all of them with oracles that are damaged by a known amount."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from eval_film import MemoryFilm, episode

from compass_edge.data.episode import Episode
from compass_edge.eval.knowledge import Knowledge
from compass_edge.eval.loop_run import run_loop
from compass_edge.eval.oracle import OracleOrienter, OraclePrm, OracleVerifier
from compass_edge.eval.result import Result
from compass_edge.loop.call import Models
from compass_edge.loop.candidate import CandidateRule
from compass_edge.loop.settings import Settings

# A tick every frame, a completion as soon as P is certain: what is left is what the models do.
EXACT = Settings(every=1, candidate=CandidateRule(high=1.0, hold=1))


def many(
    count: int, steps: int = 4, length: tuple[int, int] = (60, 120), rest: int = 30, task: str = "T"
) -> list[Episode]:
    dice = random.Random(f"{count} {steps} {length} {task}")
    episodes = []
    for number in range(count):
        ends, at = [], 0
        for _ in range(steps):
            at += dice.randint(*length)
            ends.append(at)
        episodes.append(episode(ends, at + 1 + rest, id=f"{task}/{number:03}", task=task))
    return episodes


def damaged(
    episodes: Sequence[Episode],
    *,
    orienter: dict[str, Any] | None = None,
    prm: dict[str, Any] | None = None,
    verifier: dict[str, Any] | None = None,
) -> Models:
    knowledge = Knowledge(episodes)
    return Models(
        OracleOrienter(knowledge, **(orienter or {})),
        OraclePrm(knowledge, **(prm or {})),
        OracleVerifier(knowledge, **(verifier or {})),
    )


def runs(episodes: Sequence[Episode], models: Models, settings: Settings | None = None) -> list[Result]:
    return [run_loop(one, models, settings) for one in episodes]


__all__ = ["EXACT", "MemoryFilm", "damaged", "episode", "many", "runs"]
