"""What is reported when the film does less than the instruction, more, or something else."""

from __future__ import annotations

from collections.abc import Mapping

from compass_edge.data.episode import Kind
from compass_edge.eval.report.bars import Block, Row, draw_bars
from compass_edge.eval.report.data import TITLES, Contrary, ReportData
from compass_edge.eval.report.markup import Section, estimate, figure, number, table, words
from compass_edge.eval.report.sections.episodes import LEGEND, gallery
from compass_edge.eval.report.sections.forms import COLOURS, NONE

_KINDS: tuple[Kind, ...] = ("early_stop", "extra_steps", "mismatch")
_RIGHT: Mapping[str, str] = {
    "early_stop": "right: what was done",
    "extra_steps": "right: 100 at the end",
    "mismatch": "right: 0 throughout",
}


def section(data: ReportData) -> Section:
    how = (
        "Films that do less than they were asked, more, or something unrelated: how far each method is from the right curve, of "
        "100, on average. Lower is better."
    )
    kinds = [kind for kind in _KINDS if any(kind in line.kinds for line in data.deviations)]
    if not kinds:
        missing = "Negatives were not run: --negatives adds those of the simulator, and a data set may hold its own."
        return Section("negatives", "When the film does not match", how, "", missing)
    values = [
        [line.kinds[kind].deviation if kind in line.kinds else NONE for kind in kinds] for line in data.deviations
    ]
    picture = draw_bars(
        "negatives",
        "Bars of the mean deviation of each method on each kind of negative; the table below has the numbers.",
        [(TITLES[kind], _RIGHT[kind]) for kind in kinds],
        [Row(line.method, COLOURS[line.context], line.context == "loop") for line in data.deviations],
        [
            Block(
                "Mean deviation from the right curve, of 100: shorter is better",
                values,
            )
        ],
    )
    rows = [[words(line.method), *(cell for kind in kinds for cell in _cells(line, kind))] for line in data.deviations]
    top, head = [("", 1), *((TITLES[kind], 2) for kind in kinds)], ["", *("deviation", "ends at") * len(kinds)]
    body, pictures = figure(picture, kind="wide") + table(head, rows, top=top), [picture]
    if data.negatives:
        markup, drawn = gallery(sorted(data.negatives, key=lambda chosen: _KINDS.index(chosen.kind)), "negative")
        body += markup
        pictures += drawn
    return Section("negatives", "When the film does not match", f"{how} {LEGEND}", body, pictures=pictures)


def _cells(line: Contrary, kind: Kind) -> tuple[str, str]:
    found = line.kinds.get(kind)
    if found is None:
        return number(None), number(None)
    return estimate(found.deviation), f"{number(found.terminal)}{_of(found.right)}"


def _of(right: float) -> str:
    return f'<span class="range">right: {number(right)}</span>'
