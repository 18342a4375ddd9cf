"""`compass-edge eval --suite sim`: the whole benchmark, each role alone, and how fast the loop is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass_edge.cli.eval_models import Suite
from compass_edge.cli.eval_selection import OnRendered
from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.data.episode import Episode
from compass_edge.eval.agreement import AGREEMENT, Agreement
from compass_edge.eval.blind import blind_diagnosis
from compass_edge.eval.findings import Findings, find
from compass_edge.eval.live import run_live
from compass_edge.eval.method import Method
from compass_edge.eval.negatives import NEGATIVES
from compass_edge.eval.orienter_exam import ORIENTER_EXAM, OrienterExam
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.result import Result
from compass_edge.eval.sentence_exam import SENTENCE_EXAM, SentenceExam
from compass_edge.eval.speed import measure_speed, spread
from compass_edge.eval.table import COLUMNS
from compass_edge.eval.verifier_exam import VERIFIER_EXAM, VerifierExam
from compass_edge.loop.settings import Settings

EXAMS = frozenset({VERIFIER_EXAM, ORIENTER_EXAM, SENTENCE_EXAM, AGREEMENT})  # methods whose results are no curves
_COMPARED = 3  # episodes that every executor runs
_LIVE = 2  # episodes, in real time


@dataclass(frozen=True, slots=True)
class Batch:
    """Methods that all run on the same episodes, and the tracks that they read."""

    methods: Sequence[Method]
    episodes: Sequence[Episode]
    tracks: Sequence[str] = ("path",)


def suite_episodes(
    limit: int | None, seeds: str | None, cache: Path, jobs: int, on_rendered: OnRendered
) -> list[Episode]:
    from compass_edge.cli import eval_rendering  # the simulator: only who asks for its tasks needs it

    return eval_rendering.suite_episodes(limit, seeds, cache, jobs, on_rendered)


def suite_batches(models: Suite, settings: Settings | None, episodes: Sequence[Episode]) -> list[Batch]:
    whole = positives(episodes)
    exams: list[Method] = [
        VerifierExam(models.models, settings, models.wording),
        OrienterExam(models.models, settings, models.wording),
        SentenceExam(models.prm, settings, models.wording),
    ]
    return [
        Batch(exams, whole, ("path", "shots")),
        Batch([Agreement(models.models, settings)], spread(whole, _COMPARED)),
    ]


def positives(episodes: Sequence[Episode]) -> list[Episode]:
    return [episode for episode in episodes if episode.kind not in NEGATIVES]


def blind_results(episodes: Sequence[Episode], settings: Settings | None) -> list[Result]:
    return [result for one in positives(episodes) for result in blind_diagnosis(one, settings).results]


def suite_findings(
    results: Sequence[Result], episodes: Sequence[Episode], models: Suite, settings: Settings | None, *, live: bool
) -> Findings:
    """`models` are those whose speed is measured, now and in this process."""
    made, whole = models.models(), positives(episodes)
    with ProgressBar("timing", None) as bar:
        speed = measure_speed(spread(whole), made, settings, bar.update) if whole else None
    with ProgressBar("live", None):
        shown = run_live(spread(whole, _LIVE), made, settings) if whole and live else None
    return find(
        [*results, *blind_results(episodes, settings)],
        episodes,
        prm=made.prm.name,
        settings=settings,
        wording=models.wording,
        speed=speed,
        live=shown,
    )


def headline(data: ReportData) -> dict[str, Any]:
    """What comes first in the JSON: the numbers, without what they rest on, and the curves' tables by form."""
    if data.findings is None:
        return {}
    numbers = {key: _known(one.value) for key, one in data.findings.numbers.items()}
    return {**numbers, "executors_agree": data.findings.executors_agree, "forms": _forms(data)}


def _known(value: float) -> float | None:
    """JSON has no nan."""
    return value if math.isfinite(value) else None


def _forms(data: ReportData) -> dict[str, dict[str, dict[str, float | None]]]:
    return {
        column: {
            method.name: {
                "episodes": cell.episodes,
                "mae": _known(cell.mae.value),
                "rho": _known(cell.rho.value),
                "boundary_error": _known(cell.boundary_error.value),
                "matched": _known(cell.matched.value),
            }
            for method in data.methods
            if (cell := method.cells.get(column)) is not None
        }
        for column in COLUMNS
    }
