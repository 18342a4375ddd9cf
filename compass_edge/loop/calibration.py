"""Fits the candidate rule to a model: which thresholds, on labelled curves, find completions soon and ask V rarely.

Every curve is replayed as the loop would see it, tick by tick, with an ideal V: it accepts a candidate whose frame is not
before the true completion and rejects all others. What is left is the rule's own doing. All numbers that are reported come
from `replay`, which runs the rule itself; `_sweep` is the same in numpy for thousands of settings at once, and a test holds
the two together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compass_edge.errors import UsageError
from compass_edge.loop.candidate import CandidateRule, Watch
from compass_edge.loop.mark import Mark
from compass_edge.loop.settings import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_VERIFICATIONS = Settings().max_verifications

# What is tried. Scores of different models live on different scales, hence the low values of `high`.
_HIGH = (0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
_HOLD = (1, 2, 3, 4, 6)
_PEAK = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_DROP = (0.1, 0.15, 0.2, 0.3, 0.4)
_DROP_HOLD = (1, 2, 3, 5)
_CELLS = 1 << 15  # curves x settings that are replayed at once: what fits into a core's cache


@dataclass(frozen=True, slots=True)
class Curve:
    scores: tuple[float, ...]
    done_at: int | None  # the tick at which the step was complete
    name: str = ""


@dataclass(frozen=True, slots=True)
class Weights:
    """What things cost, in ticks: a rule is as good as the sum is small."""

    delay: float = 1.0  # a tick of delay
    early: float = 4.0  # an early proposal: a verification for nothing, and the quiet after it
    miss: float = 50.0  # a completion that only the end of the video would show


@dataclass(frozen=True, slots=True)
class Outcome:
    """One curve under one rule."""

    early: int  # candidates before the completion
    delay: int | None  # ticks from the completion to the moment its candidate is proposed; None where nothing completes
    missed: bool
    stalled: bool  # every verification was spent on early candidates


@dataclass(frozen=True, slots=True)
class Score:
    """Many curves under one rule."""

    early: float  # proposals a curve
    early_rate: float  # curves with at least one: the paper's alpha
    delay_mean: float  # ticks; a missed completion counts as the rest of its curve
    delay_p95: float
    misses: int
    miss_rate: float  # of the completions
    stalls: int
    cost: float


@dataclass(frozen=True, slots=True)
class Calibration:
    rule: CandidateRule
    defaults: Score
    fitted: Score
    held_out: Score | None  # each fold scored by the rule that the other folds chose; None: too few completions
    folds: tuple[CandidateRule, ...]
    roc: tuple[tuple[float, Score], ...]  # over `high`, all else as fitted

    @property
    def at_the_edge(self) -> bool:
        """The best `high` is the least or the greatest that was tried: a better one may lie beyond."""
        return self.rule.high in (_HIGH[0], _HIGH[-1])


def replay(rule: CandidateRule, curve: Curve) -> Outcome:
    watch, early = Watch(), 0
    for tick, value in enumerate(curve.scores):
        watch, candidate = rule.observe(watch, Mark(tick, 0), value)
        if candidate is None:
            continue
        if curve.done_at is not None and candidate.frame.seq >= curve.done_at:
            return Outcome(early, tick - curve.done_at, missed=False, stalled=False)
        early += 1
        if early == MAX_VERIFICATIONS:
            break
        watch = rule.rejected(watch)
    rest = None if curve.done_at is None else len(curve.scores) - curve.done_at
    return Outcome(early, rest, missed=rest is not None, stalled=early == MAX_VERIFICATIONS)


def score(outcomes: Sequence[Outcome], weights: Weights) -> Score:
    delays = sorted(outcome.delay for outcome in outcomes if outcome.delay is not None)
    completions = max(len(delays), 1)
    early = sum(outcome.early for outcome in outcomes) / len(outcomes)
    misses = sum(outcome.missed for outcome in outcomes)
    mean = sum(delays) / completions
    return Score(
        early=early,
        early_rate=sum(outcome.early > 0 for outcome in outcomes) / len(outcomes),
        delay_mean=mean,
        delay_p95=float(delays[math.ceil(0.95 * len(delays)) - 1]) if delays else 0.0,
        misses=misses,
        miss_rate=misses / completions,
        stalls=sum(outcome.stalled for outcome in outcomes),
        cost=weights.delay * mean + weights.early * early + weights.miss * misses / completions,
    )


def grid(base: CandidateRule) -> list[CandidateRule]:
    """All settings that are tried, those nearest to `base` first: of equals the first one wins."""

    def distance(rule: CandidateRule) -> float:
        scores = abs(rule.high - base.high) + abs(rule.peak - base.peak) + abs(rule.drop - base.drop)
        return scores + 0.1 * (abs(rule.hold - base.hold) + abs(rule.drop_hold - base.drop_hold))

    rules = [
        replace(base, high=high, hold=hold, peak=peak, drop=drop, drop_hold=drop_hold)
        for high, hold, peak, drop, drop_hold in itertools.product(_HIGH, _HOLD, _PEAK, _DROP, _DROP_HOLD)
        if peak <= high and drop > base.plateau
    ]
    return sorted({base: None, **dict.fromkeys(rules)}, key=distance)


def _sweep(rules: Sequence[CandidateRule], curves: Sequence[Curve]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Early proposals, delay and misses of each curve (row) under each rule (column). The longest curve comes first."""
    import numpy as np  # only here: `compass-edge --help` works without it

    never = np.iinfo(np.int32).max
    high, peak_from, drop = (np.array([getattr(rule, key) for rule in rules]) for key in ("high", "peak", "drop"))
    hold, drop_hold = (np.array([getattr(rule, key) for rule in rules], np.int32) for key in ("hold", "drop_hold"))
    # The grid leaves these alone, and the quiet after a rejection too.
    memory, plateau = rules[0].peak_memory, rules[0].plateau
    quiet = np.array([rules[0].rejected(Watch(rejections=n)).quiet for n in range(MAX_VERIFICATIONS)])

    lengths = np.array([len(curve.scores) for curve in curves])
    done_at = np.array([never if curve.done_at is None else curve.done_at for curve in curves])
    scores = np.zeros((lengths[0], len(curves)))
    for index, curve in enumerate(curves):
        scores[: len(curve.scores), index] = curve.scores

    shape = (len(curves), len(rules))
    held, fallen, early, peak_tick, edge_tick, ready_at = (np.zeros(shape, np.int32) for _ in range(6))
    peak = np.full(shape, -np.inf)  # none
    found_at = np.full(shape, never, np.int64)
    for tick in range(lengths[0]):
        n = int(np.count_nonzero(lengths > tick))  # curves that are not over
        s, top = scores[tick, :n, None], peak[:n]
        held[:n] = (held[:n] + 1) * (s >= high)
        if tick > memory:
            top[tick - peak_tick[:n] > memory] = -np.inf
        fallen[:n] = (fallen[:n] + 1) * (s <= top - drop)  # without a peak never
        risen = (s >= peak_from) & (s >= top)
        np.copyto(top, s, where=risen)
        peak_tick[:n][risen] = tick
        edge_tick[:n][s >= top - plateau] = tick
        proposed = ((held[:n] >= hold) | (fallen[:n] >= drop_hold)) & (ready_at[:n] <= tick)
        row, column = np.nonzero(proposed)
        if not row.size:
            continue
        frame = np.where(held[row, column] >= hold[column], tick, edge_tick[row, column])
        right = frame >= done_at[row]
        found_at[row[right], column[right]] = tick
        ready_at[row[right], column[right]] = never
        row, column = row[~right], column[~right]
        early[row, column] += 1
        spent = early[row, column]
        ready_at[row, column] = np.where(spent == MAX_VERIFICATIONS, never, tick + quiet[spent - 1])
        peak[row, column], fallen[row, column] = -np.inf, 0
    completes = (done_at < never)[:, None]
    missed = completes & (found_at == never)
    delay = np.where(completes, np.minimum(found_at, lengths[:, None]) - done_at[:, None], 0)
    return early, delay, missed


def _folds(curves: Sequence[Curve], folds: int) -> list[int]:
    """The fold of each curve. Completions are dealt out first, so that every fold has some."""
    order = sorted(range(len(curves)), key=lambda index: curves[index].done_at is None)
    fold = [0] * len(curves)
    for place, index in enumerate(order):
        fold[index] = place % folds
    return fold


def calibrate(
    curves: Iterable[Curve],
    weights: Weights | None = None,
    folds: int = 5,
    base: CandidateRule | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Calibration:
    """The rule of least cost on the curves, and how well so chosen rules do on curves that did not choose them."""
    import numpy as np

    weights, base = weights or Weights(), base or CandidateRule()
    curves = sorted(curves, key=lambda curve: -len(curve.scores))
    completions = sum(curve.done_at is not None for curve in curves)
    if not completions:
        raise UsageError(
            f"Calibration needs curves whose step is completed, and none of the {len(curves)} that came has a done_at."
        )
    folds = min(folds, completions)
    fold = np.array(_folds(curves, folds))
    member = (fold == np.arange(folds)[:, None]).astype(np.float64)  # folds x curves

    rules = grid(base)
    sums = np.zeros((3, folds, len(rules)))
    width = max(min(_CELLS // len(curves), 4096), 1)
    for first in range(0, len(rules), width):
        part = slice(first, first + width)
        for total, values in zip(sums, _sweep(rules[part], curves), strict=True):
            total[:, part] = member @ values
        progress(min(first + width, len(rules)))

    completes = member @ [curve.done_at is not None for curve in curves]

    def best(seen: NDArray[Any]) -> CandidateRule:
        early, delay, missed = sums[:, seen].sum(axis=1)
        cost = weights.early * early / member[seen].sum()
        cost += (weights.delay * delay + weights.miss * missed) / completes[seen].sum()
        return rules[int(np.argmin(cost))]

    def under(rule: CandidateRule, some: Iterable[Curve] = curves) -> list[Outcome]:
        return [replay(rule, curve) for curve in some]

    rule = best(np.ones(folds, bool))
    chosen = tuple(best(np.arange(folds) != one) for one in range(folds)) if folds > 1 else ()
    held_out = [
        outcome
        for one, by_others in enumerate(chosen)
        for outcome in under(by_others, (curve for curve, its in zip(curves, fold, strict=True) if its == one))
    ]
    return Calibration(
        rule=rule,
        defaults=score(under(base), weights),
        fitted=score(under(rule), weights),
        held_out=score(held_out, weights) if held_out else None,
        folds=chosen,
        roc=tuple((high, score(under(replace(rule, high=high)), weights)) for high in _HIGH),
    )
