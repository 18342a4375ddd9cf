"""Negatives: instruction and film do not match. How far is the whole curve from the right one?

The right one is the episode's own progress: what was done of the instruction (early stop), 100 once all that was asked is done
(extra steps), zero throughout (mismatch).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from compass_edge.data.episode import Episode, Kind
from compass_edge.errors import UsageError
from compass_edge.eval.bootstrap import Bootstrap, Estimate
from compass_edge.eval.metrics import measure
from compass_edge.eval.result import Result

NEGATIVES: tuple[Kind, ...] = ("early_stop", "extra_steps", "mismatch")


@dataclass(frozen=True, slots=True)
class Deviation:
    """Of a method, on the episodes of one kind."""

    method: str
    kind: Kind
    episodes: int
    deviation: Estimate  # mean absolute, 0 to 100
    terminal: float  # mean of the last values
    right: float  # and what they should be
    highest: float  # the largest value of any curve


def deviations(results: Iterable[Result], episodes: Iterable[Episode]) -> list[Deviation]:
    """One for each method and kind, in the order in which methods came. Results of other episodes are passed over."""
    known = {episode.id: episode for episode in episodes if episode.kind in NEGATIVES}
    groups: dict[str, dict[Kind, list[tuple[Episode, Result]]]] = {}
    for result in sorted(results, key=lambda one: one.episode):
        episode = known.get(result.episode)
        if episode is not None:
            groups.setdefault(result.method, {}).setdefault(episode.kind, []).append((episode, result))
    return [
        _deviation(method, kind, kinds[kind]) for method, kinds in groups.items() for kind in NEGATIVES if kind in kinds
    ]


def _deviation(method: str, kind: Kind, runs: list[tuple[Episode, Result]]) -> Deviation:
    if len({episode.id for episode, _ in runs}) < len(runs):
        raise UsageError(f"A method has one curve of an episode, and '{method}' came with more of a negative's.")
    drawn = Bootstrap([episode.task for episode, _ in runs])
    return Deviation(
        method,
        kind,
        len(runs),
        drawn.mean([np.array([measure(result, episode).mae]) for episode, result in runs]),
        float(np.mean([result.values[-1] for _, result in runs])),
        float(np.mean([episode.progress()[-1] for episode, _ in runs])),
        float(max(result.values.max() for _, result in runs)),
    )
