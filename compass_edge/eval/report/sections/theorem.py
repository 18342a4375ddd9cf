"""The terms of the theorem, measured, and both of its bounds."""

from __future__ import annotations

from compass_edge.eval.report.data import Bounds, ReportData
from compass_edge.eval.report.markup import Section, number, table, words


def section(data: ReportData) -> Section:
    how = (
        "First bound: no estimator that sees the current frame alone errs less than δS + δQ + δR. Second: the loop errs at most "
        "(η + λ) / K. Errors and bounds are of 100, η and λ are in steps. α: how often a step is proposed early; β: how often V "  # noqa: RUF001
        "accepts that, both of the worst step; γ: true completions rejected."  # noqa: RUF001
    )
    if not data.bounds:
        missing = "The theorem's terms were not measured: they need runs of the loop on annotated episodes."
        return Section("theorem", "The theorem's terms", how, "", missing)
    head = ["Task", "K", "δS", "δQ", "δR", "error", "≥ floor", "η", "λ", "error", "≤ bound", "α", "β", "γ"]  # noqa: RUF001
    over = [("", 2), ("current frame alone", 5), ("the loop", 4), ("rates", 3)]
    total = not data.bounds[-1].task
    body = table(head, [_row(line) for line in data.bounds], kind="lasttotal" if total else "", top=over)
    return Section("theorem", "The theorem's terms", how, body)


def _row(line: Bounds) -> list[str]:
    return [
        words(line.task or "All"),
        number(line.k, 0),
        *(number(delta) for delta in (line.delta_s, line.delta_q, line.delta_r)),
        number(line.floor_error),
        number(line.floor) + _holds(line.floor_holds),
        number(line.eta, 3),
        number(line.lam, 3),
        number(line.bound_error),
        number(line.bound) + _holds(line.bound_holds),
        *(number(rate, 2) for rate in (line.alpha, line.beta, line.gamma)),
    ]


def _holds(holds: bool | None) -> str:
    if holds is None:
        return ""
    return ' <span class="yes" title="holds">✓</span>' if holds else ' <span class="no" title="does not hold">✗</span>'
