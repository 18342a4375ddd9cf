"""The findings of the simulator's suite: every number that a reader asks for first, and what each of them rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compass_edge.data.episode import Episode
from compass_edge.eval.agreement import agreed
from compass_edge.eval.blind import BLIND
from compass_edge.eval.bootstrap import Bootstrap, Estimate
from compass_edge.eval.diagnosis import CHAINED, ORACLE, WITHOUT, method_name
from compass_edge.eval.live import Live
from compass_edge.eval.local_error import local_scores
from compass_edge.eval.loop_run import LOOP
from compass_edge.eval.negatives import NEGATIVES, deviations
from compass_edge.eval.orienter_exam import OrienterScore, score_orienter
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import Result
from compass_edge.eval.sampling import settings_at
from compass_edge.eval.sentence_exam import SentenceScore, score_sentences
from compass_edge.eval.speed import Speed
from compass_edge.eval.table import Table
from compass_edge.eval.verifier_exam import VerifierScore, score_verifier
from compass_edge.eval.wording import Wording
from compass_edge.loop.settings import Settings

_KEYS = {"without": WITHOUT, "oracle": ORACLE, "self_chained": CHAINED}
_MAE = ("mae_without", "mae_oracle", "mae_self_chained", "mae_loop")


@dataclass(frozen=True, slots=True)
class Number:
    """nan: it was not measured. The interval is of 95 %, where there is one."""

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    of: str = "episodes"


@dataclass(frozen=True, slots=True)
class Findings:
    numbers: Mapping[str, Number]
    verifier: VerifierScore
    orienter: OrienterScore
    sentences: SentenceScore
    agreement: Rate  # episodes whose events are the same with every executor
    speed: Speed | None
    live: Live | None

    @property
    def executors_agree(self) -> bool | None:
        return self.agreement.hits == self.agreement.of if self.agreement.of else None


def find(
    results: Sequence[Result],
    episodes: Sequence[Episode],
    *,
    prm: str,
    settings: Settings | None,
    wording: Wording,
    speed: Speed | None = None,
    live: Live | None = None,
) -> Findings:
    """From the results of the suite's methods and exams. `prm`: the progress model's name."""
    whole = [episode for episode in episodes if episode.kind not in NEGATIVES]
    verifier = score_verifier(results, whole, settings, wording)
    orienter, sentences = score_orienter(results, whole), score_sentences(results, whole)
    numbers = {
        **_curves(results, whole, prm),
        "verifier_accuracy": _rate(verifier.right),
        "verifier_false_accept": _rate(verifier.false_accepts),
        "orienter_plan_exact": _rate(orienter.exact, "plans"),
        "prm_local_mae": _local(results, whole, prm, settings),
        "prm_blind_mae": _local(results, whole, BLIND, settings),
        "prm_wrong_sentence": _estimate(sentences.score, sentences.asked, "sentences"),
        **_negatives(results, episodes),
        "stalled": _stalled(results, whole),
        "realtime_factor": Number(speed.factor, n=speed.episodes) if speed is not None else Number(math.nan),
    }
    if live is not None:
        numbers["live_age_p95_s"] = Number(live.age_p95_s, n=live.looks, of="looks")
    return Findings(numbers, verifier, orienter, sentences, agreed(results), speed, live)


def _curves(results: Iterable[Result], episodes: Sequence[Episode], prm: str) -> dict[str, Number]:
    names = {**{key: method_name(prm, setting) for key, setting in _KEYS.items()}, "loop": LOOP}
    ids = {episode.id for episode in episodes}
    table = Table([one for one in results if one.method in names.values() and one.episode in ids], episodes)
    cells = {key: table.cell(name) for key, name in names.items() if name in table.methods}
    numbers = dict.fromkeys((*_MAE, "rho_without", "rho_loop", "gap_closed"), Number(math.nan))
    for key, cell in cells.items():
        numbers[f"mae_{key}"] = _estimate(cell.mae, cell.episodes)
        if f"rho_{key}" in numbers:
            numbers[f"rho_{key}"] = _estimate(cell.rho, cell.episodes)
    if {"without", "oracle", "loop"} <= set(cells):
        scores = [table.scores(names[key]) for key in ("without", "oracle", "loop")]
        shared = [one for one in sorted(episodes, key=lambda one: one.id) if all(one.id in some for some in scores)]
        maes = [[np.array([some[one.id].mae]) for one in shared] for some in scores]
        closed = Bootstrap([one.task for one in shared]).closed(*maes)
        numbers["gap_closed"] = _estimate(closed, len(shared))
    return numbers


def _local(results: Iterable[Result], episodes: Sequence[Episode], model: str, settings: Settings | None) -> Number:
    by = {(one.episode, one.method): one for one in results}
    names = [method_name(model, setting) for setting in (ORACLE, CHAINED)]
    run = [one for one in sorted(episodes, key=lambda one: one.id) if all((one.id, name) in by for name in names)]
    errors = []
    for one in run:
        every = (settings or settings_at(one.fps)).every
        steps = local_scores(by[one.id, names[0]], by[one.id, names[1]], one, every)
        errors.append(np.concatenate([np.zeros(0), *(step.errors for step in steps)]))
    return _estimate(Bootstrap([one.task for one in run]).mean(errors), sum(one.size for one in errors), "ticks")


def _negatives(results: Iterable[Result], episodes: Sequence[Episode]) -> dict[str, Number]:
    found = deviations([one for one in results if one.method == LOOP], episodes)
    numbers = {str(kind): Number(math.nan) for kind in NEGATIVES}
    return numbers | {str(one.kind): _estimate(one.deviation, one.episodes) for one in found}


def _stalled(results: Iterable[Result], episodes: Sequence[Episode]) -> Number:
    ids = {episode.id for episode in episodes}
    table = Table([one for one in results if one.method == LOOP and one.episode in ids], episodes)
    if LOOP not in table.methods:
        return Number(math.nan)
    cell = table.cell(LOOP)
    return Number(cell.stalled or 0, n=cell.episodes)


def _estimate(found: Estimate, n: int, of: str = "episodes") -> Number:
    return Number(found.value, found.low, found.high, n, of)


def _rate(found: Rate, of: str = "questions") -> Number:
    low, high = found.interval()
    return Number(found.value, low, high, found.of, of)
