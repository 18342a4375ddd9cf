"""The context floor of every task, with the gate that tells context-dependent tasks from controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from compass_edge.eval.report.canvas import (
    INK,
    QUIET,
    SMALL,
    Picture,
    legible,
    picture,
    place,
    sheet,
    styled,
    text_width,
)

_SLOT, _LEFT, _RIGHT = 0.285, 0.3, 0.5  # inches: a task, the scale, the gate's name
_MOST = 60  # tasks: beyond that names do not fit on any page


@dataclass(frozen=True, slots=True)
class Bar:
    task: str
    group: str
    value: float
    colour: str
    control: bool


def draw_floors(name: str, alt: str, bars: Sequence[Bar], gate: float) -> Picture:
    with styled():
        bars = [replace(bar, task=legible(bar.task, 14)) for bar in bars[:_MOST]]
        slots = max(len(bars), 7)
        width = _LEFT + _SLOT * slots + _RIGHT
        figure = sheet(width, 2.5)
        long = max(text_width(figure, bar.task, SMALL - 0.5) for bar in bars)
        names = 0.2 if long < _SLOT else min(long, 0.9) * 0.72 + 0.15
        axes = place(figure, _LEFT, 0.08, _SLOT * slots, 2.5 - 0.08 - 0.24 - names)
        high = max(gate * 1.6, *(bar.value for bar in bars)) * 1.12
        axes.set_ylim(0, high)
        axes.set_xlim(-0.5, slots - 0.5)
        axes.locator_params(axis="y", nbins=5)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="x", length=0, pad=2)
        turned: dict[str, Any] = {} if long < _SLOT else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(bars)), [bar.task for bar in bars], size=SMALL - 0.5, color=INK, **turned)
        axes.axhline(gate, color=QUIET, linewidth=0.8, dashes=(4, 3), zorder=1)
        axes.annotate(
            f"gate {gate:g}", (1, gate), xycoords=("axes fraction", "data"), xytext=(4, 0), va="center_baseline",
            textcoords="offset points", size=SMALL, color=QUIET, annotation_clip=False,
        )  # fmt: skip
        for at, bar in enumerate(bars):
            axes.bar(
                at, bar.value, width=0.72, linewidth=0.9, edgecolor=bar.colour if bar.control else "none",
                facecolor="white" if bar.control else bar.colour, zorder=2,
            )  # fmt: skip
            label = f"control  {bar.value:.1f}" if bar.control else f"{bar.value:.1f}"
            axes.annotate(
                label, (at, max(bar.value, gate) if bar.control else bar.value), xytext=(0, 3), textcoords="offset points",
                ha="center", va="bottom", size=SMALL - 1, color=QUIET if bar.control else INK, rotation=90 if bar.control else 0,
            )  # fmt: skip
        for group, members in groupby(enumerate(bars), key=lambda item: item[1].group):
            places = [at for at, _ in members]
            middle = (_LEFT + _SLOT * (sum(places) / len(places) + 0.5)) / width
            figure.text(middle, 0.03, group, ha="center", size=SMALL, color=bars[places[0]].colour, weight="bold")
        return picture(figure, name, alt)
