"""The context gap: the same frozen model without context, with the true context, and with its own end points."""

from __future__ import annotations

from compass_edge.eval.report.canvas import OTHERS, PLAIN
from compass_edge.eval.report.data import GapCell, ReportData
from compass_edge.eval.report.markup import Section, change, estimate, figure, number, swatch, table, words
from compass_edge.eval.report.scatter import Dots, draw_scatter


def section(data: ReportData) -> Section:
    how = (
        "The same frozen model three times: with the instruction alone; with the annotated step and its true position; with the "
        "annotated step, counted on from where the model itself ended the one before. Changes are relative to the first."
    )
    if not data.gap:
        missing = "The paired diagnosis was not run: it needs annotated episodes that show their whole task."
        return Section("gap", "The context gap", how, "", missing)
    colours = [PLAIN] if len(data.gap) == 1 else [OTHERS[at % len(OTHERS)] for at in range(len(data.gap))]
    rows = [
        [
            swatch(colour) + words(row.model),
            *_cells(row.without),
            *_cells(row.oracle),
            *_cells(row.chained),
            number(row.intervals, 0),
        ]
        for row, colour in zip(data.gap, colours, strict=True)
    ]
    over = [("", 1), ("without context", 2), ("true context", 2), ("self-chained", 2), ("", 1)]
    body = table(["Model", *("MAE", "ρ") * 3, "intervals"], rows, top=over)  # noqa: RUF001
    clouds = [
        Dots(row.model, colour, [x for x, _ in row.dots], [y for _, y in row.dots])
        for row, colour in zip(data.gap, colours, strict=True)
        if row.dots
    ]
    if not clouds:
        return Section("gap", "The context gap", how, body)
    picture = draw_scatter(
        "gap", "Scatter of the error of each interval without context and with it, around the diagonal.", clouds
    )
    below = sum(y < x for row in data.gap for x, y in row.dots)
    dots = sum(len(row.dots) for row in data.gap)
    caption = (
        f"A dot is one annotated step of one model: {below} of {dots} lie below the diagonal, where context helped."
    )
    return Section(
        "gap", "The context gap", how, f'<div class="pair">{body}{figure(picture, caption)}</div>', pictures=[picture]
    )


def _cells(cell: GapCell | None) -> list[str]:
    if cell is None:
        return [number(None), number(None)]
    return [
        change(cell.mae_change, lower_is_better=True) + estimate(cell.mae),
        change(cell.rho_change, lower_is_better=False) + estimate(cell.rho, 2),
    ]
