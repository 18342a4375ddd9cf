"""A report in which every part is there, of made-up numbers, for the tests of the page."""

from __future__ import annotations

import numpy as np

from compass_edge.data.episode import FORMS, Form, Kind
from compass_edge.eval.ablation import TAUS, Variant
from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.confusion import Confusion
from compass_edge.eval.findings import Findings, Number
from compass_edge.eval.live import Live
from compass_edge.eval.negatives import Deviation
from compass_edge.eval.orienter_exam import OrienterScore
from compass_edge.eval.rate import Rate
from compass_edge.eval.report.curves import Curves, Line, Mark
from compass_edge.eval.report.data import (
    TITLES,
    Bounds,
    Chosen,
    Context,
    Contrary,
    GapCell,
    GapRow,
    Latency,
    Method,
    ReportData,
    TaskFloor,
)
from compass_edge.eval.sentence_exam import SentenceScore
from compass_edge.eval.speed import Speed
from compass_edge.eval.table import COLUMNS, Cell, Column
from compass_edge.eval.verifier_exam import VerifierScore
from compass_edge.eval.verifier_questions import CASES

KINDS: tuple[Kind, ...] = ("early_stop", "extra_steps", "mismatch")


def near(value: float, by: float = 0.1) -> Estimate:
    return Estimate(value, value * (1 - by), value * (1 + by))


def cells(mae: float, rho: float, end: float, stalled: int | None) -> dict[Column, Cell]:
    return {
        column: Cell(120 if column == "overall" else 40, 9, near(mae + at), near(rho - at / 50, 0.02), near(7.5),
                     Estimate(0.31, 0.25, 0.4), near(end + at), stalled)
        for at, column in enumerate(COLUMNS)
    }  # fmt: skip


def method(name: str, context: Context, mae: float, rho: float) -> Method:
    return Method(name, context, cells(mae, rho, mae * 0.9, 7 if context == "loop" else None))


def curves(frames: int = 300, k: int = 6, late: int = 8) -> Curves:
    ends = np.linspace(0, frames - 10, k + 1)[1:].astype(int)
    every = np.arange(frames)
    truth = np.interp(every, [0, *ends], np.linspace(0, 100, k + 1))
    loop = np.interp(every, [0, *(ends + late)], np.linspace(0, 100, k + 1))
    alone = 55 + 30 * np.sin(every / 14)
    lines = [Line("no context", "#D55E00", alone), Line("loop", "#0072B2", loop, strong=True)]
    needs = [(0, "S"), *((int(end), "SR") for end in ends[:-1])]
    marks = [Mark(int(end) + late, True) for end in ends] + [Mark(30, False)]
    return Curves(truth, lines, 10.0, [int(end) for end in ends], needs, marks)


def chosen(episode: str, form: Form | None, why: str, kind: Kind = "positive") -> Chosen:
    return Chosen(episode, "Press the red button three times, then the blue one.", form, kind, why, 4.25, curves())


def bounds(task: str) -> Bounds:
    return Bounds(task, 6, 3.1, 1.2, 8.4, 0.213, 0.104, 0.5, 0.1, 0.2, 0.3, 0.05, 12.7, 25.4, True, 5.3, 4.9, True)


def findings() -> Findings:
    values = {"verifier_false_accept": 0.03, "orienter_plan_exact": 0.98, "prm_local_mae": 0.062, "prm_blind_mae": 0.141,
              "prm_wrong_sentence": 0.045}  # fmt: skip
    return Findings(
        {key: Number(value, value * 0.9, value * 1.1, 480) for key, value in values.items()},
        VerifierScore(Rate(460, 480), Rate(7, 240), {case: Rate(60 + at, 70) for at, case in enumerate(CASES)}, 1),
        OrienterScore(Rate(118, 120), Rate(119, 120), {"S1": Rate(5, 5)}, 0),
        SentenceScore(near(0.045), near(0.035), near(0.055), 300),
        Rate(3, 3),
        Speed(5, 2, 150.0, 40.0, 3.1, 3.7),
        Live(2, 900, 0.2, 0.31, 0),
    )


def full() -> ReportData:
    gap = [
        GapRow("one-prm", 552, GapCell(near(25.4), near(0.53)), GapCell(near(4.9), near(0.93), -0.81, 0.75),
               GapCell(near(11.4), near(0.92), -0.55, 0.74), [(10.0, 2.0), (30.5, 8.25), (4.0, 6.0)]),
        GapRow("another-prm", 552, GapCell(near(17.9), near(0.74)), GapCell(near(4.2), near(0.99), -0.77, 0.35),
               GapCell(near(16.7), near(0.99), -0.07, 0.34), [(22.0, 3.0), (41.0, 9.0)]),
    ]  # fmt: skip
    methods = [
        method("one-prm, no context", "without", 25.4, 0.53),
        method("one-prm, true context", "oracle", 4.9, 0.93),
        method("one-prm, self-chained", "chained", 11.4, 0.92),
        method("the loop", "loop", 9.3, 0.93),
    ]
    deviations = [
        Contrary(
            name,
            context,
            {kind: Deviation(name, kind, 5, near(base + at), 71.5, 66.0, 80.5) for at, kind in enumerate(KINDS)},
        )
        for name, context, base in (("one-prm, no context", "without", 32.7), ("the loop", "loop", 7.3))
    ]
    ablation = [
        Variant(tau, cells(error + 0.7, 0.9, error, stalled), {}, 4.6)
        for tau, error, stalled in zip(TAUS, (8.6, 17.2, 18.8), (7, 40, 45), strict=True)
    ]
    rng = np.random.default_rng(0)
    latencies = [
        Latency(f"T/{at}", {"orienter": 20 + s, "prm": 5 + s / 4, "verifier": 12 + s}, {"orienter": 8, "prm": 60, "verifier": 9})
        for at, s in enumerate(rng.uniform(0, 20, 40))
    ]  # fmt: skip
    floors = [
        TaskFloor(f"{form[0].upper()}{at}", form, value, value < 4)
        for form in FORMS
        for at, value in enumerate((8.1, 22.4, 0.2, 15.3, 3.2, 9.9, 12.4, 6.0), 1)
    ]
    return ReportData(
        title="Evaluation of the loop on 120 episodes",
        facts={"Command": {"command line": "compass-edge eval data"}, "Models": {"prm": "one-prm"}, "Data": {"hash": "abc123"}},
        notice="Made-up numbers.",
        methods=methods,
        recovered=0.78,
        gap=gap,
        chosen=[chosen(f"{form[0].upper()}1/{at}", form, why) for form in FORMS
                for at, why in enumerate(("best", "median", "worst"))],
        deviations=deviations,
        negatives=[chosen(f"{kind}/0", None, TITLES[kind], kind) for kind in KINDS],
        ablation=ablation,
        confusion=Confusion(510, 13, 201, 42, 9),
        bounds=[bounds("R1"), bounds("S2"), bounds("")],
        latencies=latencies,
        floors=floors,
        findings=findings(),
        episodes=[{"episode": "R1/0", "method": "the loop", "mae": 9.3}],
    )  # fmt: skip
