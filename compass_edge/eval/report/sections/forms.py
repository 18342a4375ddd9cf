"""Every method on every form of context dependence."""

from __future__ import annotations

import math

from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.report.bars import Block, Row, draw_bars
from compass_edge.eval.report.canvas import CHAINED, LOOP, ORACLE, PLAIN, QUIET
from compass_edge.eval.report.data import TITLES, Method, ReportData
from compass_edge.eval.report.markup import Section, estimate, figure, number, percent, table, words
from compass_edge.eval.table import COLUMNS, Column

NONE = Estimate(math.nan, math.nan, math.nan)
COLOURS = {"loop": LOOP, "frame": QUIET, "without": PLAIN, "oracle": ORACLE, "chained": CHAINED}


def section(data: ReportData) -> Section:
    how = (
        "Top: how far the reported progress is from the truth, on a scale of 0 to 100. Bottom: how well its order agrees with "
        "time. An episode that needs several forms counts under each. Thin lines are 95% intervals of a bootstrap over tasks, or "
        "over episodes where there are fewer than eight tasks."
    )
    if any(method.context == "frame" for method in data.methods):
        how += " The frame alone, at best: the least error that is possible for whoever sees the current frame and no history."
    missing = "No method was run on an episode that shows its whole task: name data sets, or --tasks and --seeds."
    columns = [column for column in COLUMNS if any(column in method.cells for method in data.methods)]
    if not columns:
        return Section("forms", "Every form of context", how, "", missing)
    rows = [Row(method.name, COLOURS[method.context], method.context == "loop") for method in data.methods]
    maes = [[_bar(method, column, "mae") for column in columns] for method in data.methods]
    rhos = [[_bar(method, column, "rho") for column in columns] for method in data.methods]
    picture = draw_bars(
        "forms",
        "Bars of mean absolute error and Spearman's rho for each method and form; the table below has the numbers.",
        [(TITLES[column], _count(data, column)) for column in columns],
        rows,
        [
            Block("Mean absolute error, of 100: shorter is better", maes),
            Block("Spearman's rho against time: longer is better", rhos, digits=2),
        ],
    )
    return Section(
        "forms", "Every form of context", how, figure(picture, kind="wide") + _table(data), pictures=[picture]
    )


def _bar(method: Method, column: Column, measure: str) -> Estimate:
    found: Estimate = getattr(method.cells[column], measure) if column in method.cells else NONE
    return found


def _count(data: ReportData, column: Column) -> str:
    most = max(method.cells[column].episodes for method in data.methods if column in method.cells)
    return f"{most} episode{'s' * (most != 1)}"


def _table(data: ReportData) -> str:
    whole = [(method, method.cells["overall"]) for method in data.methods if "overall" in method.cells]
    head = ["All forms", "MAE", "ρ", "boundary error", "within 5%", "error at step ends", "stalled"]  # noqa: RUF001
    rows = [
        [
            words(method.name),
            estimate(scores.mae),
            estimate(scores.rho, 2),
            estimate(scores.boundary_error),
            percent(scores.matched.value),
            estimate(scores.end_error),
            number(scores.stalled, 0),
        ]
        for method, scores in whole
    ]
    return table(head, rows) if rows else ""
