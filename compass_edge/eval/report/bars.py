"""Bars: methods in rows, forms or kinds in columns, so that a name is written once and no legend is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.report.canvas import (
    BODY,
    GROUND,
    INK,
    QUIET,
    RULE,
    SMALL,
    Picture,
    legible,
    picture,
    place,
    sheet,
    styled,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _GAP, _ROW, _HEAD, _TITLE = 7.6, 0.18, 0.27, 0.24, 0.36
_NAME = 2.1  # inches at most


@dataclass(frozen=True, slots=True)
class Row:
    label: str
    colour: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One measure: a bar for each row and column."""

    title: str
    bars: Sequence[Sequence[Estimate]]  # nan: there is none
    digits: int = 1


def draw_bars(
    name: str, alt: str, columns: Sequence[tuple[str, str]], rows: Sequence[Row], blocks: Sequence[Block]
) -> Picture:
    """`columns` are heads of two lines: the name, and what it counts."""
    with styled():
        heads = _HEAD + 0.18 * any(count for _, count in columns)
        height = heads + len(blocks) * (_TITLE + _ROW * len(rows)) + 0.06
        figure = sheet(_WIDTH, height)
        labels = [legible(row.label, 34) for row in rows]
        named = 0.16 + max(text_width(figure, label, BODY, "bold") for label in labels)
        named = min(named, _NAME + 0.6)
        wide = (_WIDTH - named - _GAP * (len(columns) - 1)) / len(columns)
        for column, (head, count) in enumerate(columns):
            left = (named + column * (wide + _GAP)) / _WIDTH
            figure.text(left, 1 - 0.03 / height, head, va="top", weight="bold")
            figure.text(left, 1 - 0.21 / height, count, va="top", size=SMALL, color=QUIET)
        for number, block in enumerate(blocks):
            top = heads + number * (_TITLE + _ROW * len(rows))
            top += _TITLE
            figure.text(0, 1 - (top - 0.07) / height, block.title, va="bottom", size=SMALL, color=QUIET)
            for row, label in enumerate(labels):
                middle = 1 - (top + (row + 0.5) * _ROW) / height
                weight = "bold" if rows[row].strong else "normal"
                figure.text(0, middle, label, va="center_baseline", weight=weight)
            low, high = _limits(block, wide)
            for column in range(len(columns)):
                axes = place(figure, named + column * (wide + _GAP), top, wide, _ROW * len(rows))
                _column(axes, [line[column] for line in block.bars], rows, (low, high), block.digits)
        return picture(figure, name, alt)


def _limits(block: Block, wide: float) -> tuple[float, float]:
    """The same scale for all columns of a measure, with room for the number beyond the bar."""
    bars = [bar for line in block.bars for bar in line if math.isfinite(bar.value)]
    high = max([0.0, *(max(bar.value, _or(bar.high, bar.value)) for bar in bars)])
    low = min([0.0, *(min(bar.value, _or(bar.low, bar.value)) for bar in bars)])
    span = (high - low) or 1.0
    number = 0.46  # inches that a number takes
    room = span * number / max(wide - number, 0.3)
    return (low - (room if low < 0 else 0.0), high + room)


def _or(value: float, otherwise: float) -> float:
    return value if math.isfinite(value) else otherwise


def _column(
    axes: Axes, bars: Sequence[Estimate], rows: Sequence[Row], limits: tuple[float, float], digits: int
) -> None:
    axes.set_xlim(*limits)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.axis("off")
    axes.axvspan(limits[0], limits[1], color=GROUND, linewidth=0)
    axes.axvline(0, color=RULE, linewidth=1)
    pad = (limits[1] - limits[0]) * 0.035
    for at, (bar, row) in enumerate(zip(bars, rows, strict=True)):
        if not math.isfinite(bar.value):
            axes.text(pad, at, "none", va="center_baseline", size=SMALL, color=QUIET)
            continue
        axes.barh(at, bar.value, height=0.62, color=row.colour, alpha=1.0 if row.strong else 0.62, linewidth=0)
        low, high = _or(bar.low, bar.value), _or(bar.high, bar.value)
        if high > low:
            axes.plot((low, high), (at, at), "|-", color=INK, linewidth=0.9, markersize=4, markeredgewidth=0.9)
        left = bar.value < 0
        axes.text(
            (min(bar.value, low) - pad) if left else (max(bar.value, high) + pad),
            at,
            f"{bar.value:.{digits}f}".replace("-", "−"),  # noqa: RUF001
            ha="right" if left else "left",
            va="center_baseline",
            size=SMALL,
            weight="bold" if row.strong else "normal",
        )
