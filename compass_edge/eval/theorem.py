"""The theorem's terms, measured on runs of the loop by the definitions of the paper's appendix A, and both bounds checked.

A task is a task with one number of steps K; one whose episodes differ in K is measured as several. Expectations are over all
frames of its episodes. Errors and bounds are on the scale of 0 to 100, eta and lambda in steps.
- eta: the mean of d_t, which is |k_t - a_t| + 1 where k_t is not a_t, and K in all frames of an episode whose plan does not match.
- lambda: the mean error of p_loc where the plan matches and k_t = a_t.
- alpha_k: of the episodes whose plan matches and in which N held step k, those in which P proposed its completion early.
- beta_k: of those early proposals, all of them, the share that V accepted. A proposal of a step that was complete before it
  began is not early: it is false, and no advance on it is premature.
- gamma: of the proposals of true completions, the share that V rejected.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.episode import Episode, Local
from compass_edge.errors import UsageError
from compass_edge.eval.floor import Floors
from compass_edge.eval.metrics import mean_absolute_error
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import LoopTrace, Result

# Rounding of sums of a few hundred numbers up to 100.
_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Breach:
    """A frame whose error is larger than its own terms allow. The bound is algebra: the values do not follow from the trace."""

    episode: str
    frame: int
    error: float  # 0 to 100
    allowed: float

    def __str__(self) -> str:
        return (
            f"Episode '{self.episode}', frame {self.frame}: the error must be at most {self.allowed:.3f} by its position "
            f"and its local progress, and is {self.error:.3f}: its value does not follow from its trace."
        )


@dataclass(frozen=True, slots=True)
class Terms:
    task: str  # empty: all together
    size: int  # K; 0: all together
    frames: int
    episodes: int
    matching: int  # of them, those whose plan matches
    error: float
    eta: float
    lam: float
    bound: float  # 100 (eta + lambda) / K; all together: the mean over the tasks' frames
    alphas: tuple[Rate, ...]  # one for each step
    betas: tuple[Rate, ...]
    gamma: Rate
    breaches: tuple[Breach, ...] = ()

    @property
    def alpha(self) -> float:
        """The largest of the steps', as in the theorem."""
        return _largest(self.alphas)

    @property
    def beta(self) -> float:
        return _largest(self.betas)

    @property
    def early(self) -> Rate:
        """alpha over all steps."""
        return sum(self.alphas, Rate())

    @property
    def false_accepts(self) -> Rate:
        """beta over all steps."""
        return sum(self.betas, Rate())

    @property
    def holds(self) -> bool:
        return not self.breaches and self.error <= self.bound + _SLACK


@dataclass(frozen=True, slots=True)
class FloorCheck:
    """Of an estimator that reads instruction and current frame alone."""

    task: str
    floor: float
    error: float

    @property
    def holds(self) -> bool:
        return self.error >= self.floor - _SLACK


def measure_terms(results: Iterable[Result], episodes: Iterable[Episode], by: Local = "time") -> list[Terms]:
    """One for each task (and K), sorted, and all together as the last. Of runs of the loop on episodes that have steps."""
    known = {episode.id: episode for episode in episodes}
    groups: defaultdict[tuple[str, int], list[tuple[Episode, Result]]] = defaultdict(list)
    for result in sorted(results, key=lambda one: one.episode):
        episode = known.get(result.episode)
        if episode is None or result.trace is None:
            raise UsageError(
                f"The terms are measured on runs of the loop, with their episodes, and '{result.method}' on "
                f"'{result.episode}' came without."
            )
        if episode.size:
            groups[episode.task, episode.size].append((episode, result))
    terms = [_terms(task, size, runs, by) for (task, size), runs in sorted(groups.items())]
    return [*terms, _together(terms)]


def check_floors(
    floors: Floors, episodes: Sequence[Episode], values: Sequence[NDArray[np.float64]]
) -> list[FloorCheck]:
    """The first bound. `values[i]` is the estimator's curve of `episodes[i]`; it must be one value for each cell."""
    checks = []
    for task, floor in floors.tasks.items():
        pairs = [(one.progress(), curve) for one, curve in zip(episodes, values, strict=True) if one.task == task]
        truth, curve = (np.concatenate(side) for side in zip(*pairs, strict=True))
        checks.append(FloorCheck(task, floor.floor, mean_absolute_error(curve, truth)))
    return checks


def _terms(task: str, size: int, runs: Sequence[tuple[Episode, Result]], by: Local) -> Terms:
    charged, local_errors, errors = [], [], []
    breaches: list[Breach] = []
    for episode, result in runs:
        trace = _trace(result)
        right = trace.plan_matches & (trace.position == episode.active())
        charge = np.where(right, 0.0, np.abs(trace.position - episode.active()) + 1.0)
        if not trace.plan_matches:
            charge = np.full(episode.frames, float(size))
        local = np.abs(trace.local - episode.local(by))
        error = np.abs(result.values - episode.progress(by))
        allowed = 100.0 * np.where(right, local, charge) / size
        over = np.flatnonzero(error > allowed + _SLACK)
        breaches += [Breach(episode.id, int(at), float(error[at]), float(allowed[at])) for at in over[:1]]
        charged.append(charge)
        local_errors.append(local[right])
        errors.append(error)
    eta = float(np.concatenate(charged).mean())
    within = np.concatenate(local_errors)
    lam = float(within.mean()) if within.size else 0.0
    matching = [(episode, _trace(result)) for episode, result in runs if _trace(result).plan_matches]
    return Terms(
        task,
        size,
        sum(one.size for one in errors),
        len(runs),
        len(matching),
        float(np.concatenate(errors).mean()),
        eta,
        lam,
        100.0 * (eta + lam) / size,
        tuple(_alpha(matching, k) for k in range(1, size + 1)),
        tuple(_beta(matching, k) for k in range(1, size + 1)),
        sum((_gamma(trace) for _, trace in matching), Rate()),
        tuple(breaches),
    )


def _together(terms: Sequence[Terms]) -> Terms:
    """Each task's bound holds on its frames, so that their mean holds on all. alpha and beta stay maxima over all steps."""
    weights = {index: one.frames for index, one in enumerate(terms)}
    return Terms(
        "",
        0,
        sum(one.frames for one in terms),
        sum(one.episodes for one in terms),
        sum(one.matching for one in terms),
        _weighted(weights, [one.error for one in terms]),
        _weighted(weights, [one.eta for one in terms]),
        _weighted(weights, [one.lam for one in terms]),
        _weighted(weights, [one.bound for one in terms]),
        tuple(rate for one in terms for rate in one.alphas),
        tuple(rate for one in terms for rate in one.betas),
        sum((one.gamma for one in terms), Rate()),
        tuple(breach for one in terms for breach in one.breaches),
    )


def _trace(result: Result) -> LoopTrace:
    if result.trace is None:
        raise TypeError("Only runs of the loop have a trace.")
    return result.trace


def _is_early(episode: Episode, step: int, frame: int) -> bool:
    return frame < episode.truth[step - 1].end


def _alpha(runs: Sequence[tuple[Episode, LoopTrace]], step: int) -> Rate:
    held = [(one, trace) for one, trace in runs if int(trace.position.max()) >= step]
    early = sum(
        any(ruling.step == step and _is_early(one, step, ruling.frame) for ruling in trace.rulings)
        for one, trace in held
    )
    return Rate(early, len(held))


def _beta(runs: Sequence[tuple[Episode, LoopTrace]], step: int) -> Rate:
    early = [
        ruling.accepted
        for one, trace in runs
        for ruling in trace.rulings
        if ruling.step == step and _is_early(one, step, ruling.frame)
    ]
    return Rate(sum(early), len(early))


def _gamma(trace: LoopTrace) -> Rate:
    true = [ruling for ruling in trace.rulings if ruling.true]
    return Rate(sum(not ruling.accepted for ruling in true), len(true))


def _largest(rates: Sequence[Rate]) -> float:
    return max((rate.value for rate in rates if rate.of), default=math.nan)


def _weighted(weights: Mapping[int, int], values: Sequence[float]) -> float:
    total = sum(weights.values())
    return sum(weights[index] * value for index, value in enumerate(values)) / total if total else math.nan
