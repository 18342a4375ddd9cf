"""The numbers that a reader takes home."""

from __future__ import annotations

import math
from collections.abc import Iterator

from compass_edge.eval.report.data import Method, ReportData
from compass_edge.eval.report.markup import Section, estimate, number, percent


def section(data: ReportData) -> Section:
    tiles = "".join(
        f'<div class="tile{" strong" if strong else ""}"><b>{value}</b><span>{label}</span></div>'
        for value, label, strong in _tiles(data)
    )
    return Section(
        "headline",
        "",
        "",
        f'<div class="tiles">{tiles}</div>' if tiles else "",
        "There is no run of the loop in this report, so there are no headline numbers.",
    )


def first(data: ReportData, context: str) -> Method | None:
    return next((method for method in data.methods if method.context == context and "overall" in method.cells), None)


def _tiles(data: ReportData) -> Iterator[tuple[str, str, bool]]:
    loop, alone = first(data, "loop"), first(data, "without")
    if loop is None:
        return
    scores = loop.cells["overall"]
    yield estimate(scores.mae), f"mean absolute error of the loop, of 100, on {_episodes(scores.episodes)}", True
    yield estimate(scores.rho, 2), "Spearman's ρ of the loop against time", True  # noqa: RUF001
    if alone is not None:
        before = alone.cells["overall"]
        yield estimate(before.mae), "mean absolute error of the same model without context", False
    if data.recovered is not None:
        yield percent(data.recovered), "of the error that true context would remove, the loop removes", False
    if math.isfinite(scores.matched.value):
        yield percent(scores.matched.value), "of step boundaries found within 5% of the episode", False
    if scores.stalled is not None:
        yield number(scores.stalled, 0), f"of {_episodes(scores.episodes)} stalled with a step unverified", False


def _episodes(count: int) -> str:
    return f"{count} episode{'s' * (count != 1)}"
