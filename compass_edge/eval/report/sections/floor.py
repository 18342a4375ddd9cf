"""The context floor of every task."""

from __future__ import annotations

from compass_edge.data.episode import FORMS
from compass_edge.eval.report.canvas import CHAINED, LOOP, ORACLE, QUIET
from compass_edge.eval.report.data import TITLES, ReportData
from compass_edge.eval.report.floors import Bar, draw_floors
from compass_edge.eval.report.markup import Section, figure, number, table, words

_COLOURS = dict(zip((*FORMS, None), (LOOP, ORACLE, CHAINED, QUIET), strict=True))


def section(data: ReportData) -> Section:
    how = (
        "The least mean error, of 100, that is possible for an estimator that sees the current frame alone: what a task costs whoever "
        f"ignores its history. A task counts as context-dependent above {data.gate:g}; the others are controls."
    )
    if not data.floors:
        missing = "The floors need episodes with the visible state of every frame, as the simulator writes them: --tasks adds them."
        return Section("floor", "The context floor", how, "", missing)
    order = sorted(data.floors, key=lambda floor: FORMS.index(floor.form) if floor.form else len(FORMS))
    picture = draw_floors(
        "floor",
        "Bars of the context floor of each task, with the gate.",
        [Bar(f.task, TITLES[f.form] if f.form else "No form", f.value, _COLOURS[f.form], f.control) for f in order],
        data.gate,
    )
    rows = [
        [
            words(f.task),
            words(TITLES[f.form] if f.form else ""),
            number(f.value, 2),
            "control" if f.control else "needs context",
        ]
        for f in order
    ]
    numbers = table(["Task", "form", "floor", ""], rows)
    body = figure(picture) + f"<details><summary>The numbers</summary>{numbers}</details>"
    return Section("floor", "The context floor", how, body, pictures=[picture])
