"""The fit of the blind predictor, on tuning seeds: the motion alone, without pictures. `python -m compass_edge.eval.blind_fit`"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from compass_edge.data.episode import StepTruth
from compass_edge.eval.blind import TABLE, WHOLE, kind_of
from compass_edge.sim.assets import panda_assets
from compass_edge.sim.catalogue import TASKS, write
from compass_edge.sim.performance import perform
from compass_edge.sim.world import FPS
from compass_edge.workers import workers

SEEDS = range(1000, 1005)
_DIGITS = 4
# Of an episode: the kind of each stretch, and how far it is at each of its frames, from 0 to 1.
Curves = list[tuple[str, list[float]]]


def curves_of(steps: Sequence[StepTruth]) -> Curves:
    """Each step by time, up to the frame that completes it; and the whole, one step after the other."""
    found: Curves = []
    whole: list[float] = []
    begin = 0
    for place, step in enumerate(steps):
        length = step.end - begin
        local = [frame / length for frame in range(length + 1)]
        found.append((kind_of(step), local))
        whole += [(place + value) / len(steps) for value in local[:-1]]
        begin = step.end
    return [*found, (WHOLE, [*whole, 1.0])]


def medians_of(curves: Curves) -> dict[str, list[float]]:
    """Frame by frame, of those that are not over yet."""
    by_kind: defaultdict[str, list[list[float]]] = defaultdict(list)
    for kind, values in curves:
        by_kind[kind].append(values)
    return {
        kind: [
            round(median(one[frame] for one in some if frame < len(one)), _DIGITS)
            for frame in range(max(map(len, some)))
        ]
        for kind, some in sorted(by_kind.items())
    }


def performed_curves(task: str, seed: int, assets: Path) -> Curves:
    performance = perform(write(task, seed), assets)
    ends = zip(performance.script.steps, performance.ends, strict=True)
    return curves_of([StepTruth(step.sentence, end, completion=step.completion) for step, end in ends])


def fit(seeds: Sequence[int] = SEEDS, jobs: int | None = None) -> dict[str, object]:
    assets = panda_assets()
    wanted = [(task, seed) for task in TASKS for seed in seeds]
    with workers(jobs, len(wanted)) as pool:
        futures = [pool.submit(performed_curves, task, seed, assets) for task, seed in wanted]
        curves = [curve for future in futures for curve in future.result()]
    return {"fps": FPS, "seeds": [seeds[0], seeds[-1]], "episodes": len(wanted), "medians": medians_of(curves)}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(fit()) + "\n", "utf-8")
