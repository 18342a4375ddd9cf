"""The table: every metric of every method, for each form of context and overall, with intervals.

An episode counts under each form that its steps need, and once overall: the forms' columns overlap where episodes are mixes,
and `Cell.mixes` says how many of a column are. An episode whose steps name no form counts under its task's main one. MAE and
rho are means over episodes; what belongs to a step (boundaries, ends) is a mean over all steps of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.episode import FORMS, Episode, Form, Local
from compass_edge.errors import UsageError
from compass_edge.eval.bootstrap import Bootstrap, Estimate
from compass_edge.eval.metrics import Scores, measure
from compass_edge.eval.result import Result

Column = Form | Literal["overall"]
COLUMNS: tuple[Column, ...] = (*FORMS, "overall")
Metric = Literal["mae", "rho", "boundary_error", "matched", "end_error"]
METRICS: tuple[Metric, ...] = ("mae", "rho", "boundary_error", "matched", "end_error")


@dataclass(frozen=True, slots=True)
class Cell:
    episodes: int
    mixes: int  # of them, those that need more than one form
    mae: Estimate
    rho: Estimate
    boundary_error: Estimate  # per cent of the duration
    matched: Estimate  # share of boundaries within 5 % of the duration, 0 to 1
    end_error: Estimate
    stalled: int | None  # None: the method is not a loop


class Table:
    def __init__(self, results: Iterable[Result], episodes: Iterable[Episode], by: Local = "time") -> None:
        self._episodes = {episode.id: episode for episode in episodes}
        self._scores: dict[str, dict[str, Scores]] = {}
        self._loops: set[str] = set()
        for result in results:
            episode = self._episodes.get(result.episode)
            if episode is None:
                raise UsageError(f"A result speaks of episode '{result.episode}', and no such episode came.")
            scores = self._scores.setdefault(result.method, {})
            if result.episode in scores:
                raise UsageError(
                    f"A method has one curve of an episode, and '{result.method}' of '{result.episode}' came twice."
                )
            scores[result.episode] = measure(result, episode, by)
            if result.trace is not None:
                self._loops.add(result.method)
        self._bootstraps: dict[tuple[str, ...], Bootstrap] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        """In the order in which they came."""
        return tuple(self._scores)

    def scores(self, method: str) -> Mapping[str, Scores]:
        """By episode."""
        if method not in self._scores:
            raise UsageError(f"There is no method '{method}'. There are: {', '.join(self._scores)}.")
        return self._scores[method]

    def cell(self, method: str, column: Column = "overall") -> Cell:
        scores = self.scores(method)
        ids = self._ids(column, [scores])
        drawn = self._bootstrap(ids)
        mae, rho, boundary_error, matched, end_error = (
            drawn.mean([_values(scores[id], metric) for id in ids]) for metric in METRICS
        )
        mixes = sum(len(needed(self._episodes[id])) > 1 for id in ids)
        stalled = sum(scores[id].stalled for id in ids) if method in self._loops else None
        return Cell(len(ids), mixes, mae, rho, boundary_error, matched, end_error, stalled)

    def difference(self, method: str, other: str, metric: Metric = "mae", column: Column = "overall") -> Estimate:
        """Of `method` less `other`, on the episodes that both were run on."""
        scores, others = self.scores(method), self.scores(other)
        ids = self._ids(column, [scores, others])
        return self._bootstrap(ids).difference(
            [_values(scores[id], metric) for id in ids], [_values(others[id], metric) for id in ids]
        )

    def _ids(self, column: Column, run: Sequence[Mapping[str, Scores]]) -> tuple[str, ...]:
        """Sorted, so that the intervals do not depend on the order in which results came."""
        if column not in COLUMNS:
            raise UsageError(f"There is no column '{column}'. There are: {', '.join(COLUMNS)}.")
        return tuple(
            id
            for id, episode in sorted(self._episodes.items())
            if all(id in scores for scores in run) and (column == "overall" or column in needed(episode))
        )

    def _bootstrap(self, ids: tuple[str, ...]) -> Bootstrap:
        if ids not in self._bootstraps:
            self._bootstraps[ids] = Bootstrap([self._episodes[id].task for id in ids])
        return self._bootstraps[ids]


def needed(episode: Episode) -> tuple[Form, ...]:
    """The forms under which an episode counts; more than one: a mix."""
    return episode.forms or ((episode.form,) if episode.form is not None else ())


def _values(scores: Scores, metric: Metric) -> NDArray[np.float64]:
    match metric:
        case "mae":
            return np.array([scores.mae])
        case "rho":
            return np.array([scores.rho])
        case "boundary_error":
            return scores.boundaries
        case "matched":
            return scores.matched.astype(np.float64)
        case "end_error":
            return scores.end_errors
