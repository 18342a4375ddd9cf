"""What the expected transition tau buys."""

from __future__ import annotations

from compass_edge.eval.ablation import Variant
from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.report.bars import Block, Row, draw_bars
from compass_edge.eval.report.canvas import LOOP, QUIET
from compass_edge.eval.report.data import TITLES, ReportData
from compass_edge.eval.report.markup import Section, estimate, figure, number, table, words
from compass_edge.eval.report.sections.forms import NONE
from compass_edge.eval.table import COLUMNS, Column

_NAMES = {"everywhere": "τ everywhere", "orienter": "not at V", "nowhere": "not at O and V"}


def section(data: ReportData) -> Section:
    how = (
        "The loop as it is, without the expected transition τ at the Verifier, and without it altogether: the error at the end of "
        "each annotated step, where a right curve reads k/K. Lower is better."
    )
    if not data.ablation:
        return Section(
            "ablation", "Without the expected transition", how, "", "The ablation was not run: --ablation adds it."
        )
    columns = [column for column in COLUMNS if any(column in variant.cells for variant in data.ablation)]
    names = [_NAMES.get(variant.tau, variant.tau) for variant in data.ablation]
    picture = draw_bars(
        "ablation",
        "Bars of the error at step ends for each variant and form; the table below has the numbers.",
        [(TITLES[column], "") for column in columns],
        [
            Row(name, LOOP if variant.tau == "everywhere" else QUIET, variant.tau == "everywhere")
            for name, variant in zip(names, data.ablation, strict=True)
        ],
        [
            Block(
                "Error at the end of each step, of 100: shorter is better",
                [[_error(variant, column) for column in columns] for variant in data.ablation],
            )
        ],
    )
    rows = [
        [
            words(name),
            *(estimate(_error(variant, column)) for column in columns),
            estimate(variant.cells["overall"].mae),
            number(variant.planned),
            f"{number(variant.cells['overall'].stalled, 0)} of {number(variant.cells['overall'].episodes, 0)}",
        ]
        for name, variant in zip(names, data.ablation, strict=True)
    ]
    head = ["Error at step ends", *(TITLES[column] for column in columns), "MAE", "steps planned", "stalled"]
    return Section(
        "ablation",
        "Without the expected transition",
        how,
        figure(picture, kind="wide") + table(head, rows),
        pictures=[picture],
    )


def _error(variant: Variant, column: Column) -> Estimate:
    return variant.cells[column].end_error if column in variant.cells else NONE
