"""The context floor of every task, with the gate that tells context-dependent tasks from controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SLOT, _LEFT, _RIGHT, _HEIGHT = 0.285, 0.3, 0.5, 2.5  # inches: a task, the scale, the gate's name
_APART = 0.16  # between two groups
_MOST = 60  # tasks: beyond that names do not fit on any page


@dataclass(frozen=True, slots=True)
class Bar:
    task: str
    group: str
    value: float
    colour: str
    control: bool


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    middle: float  # inches from the left end of the axes
    bars: Sequence[float]
    right: float


def arrange(bars: Sequence[Bar], wide: Mapping[str, float]) -> list[Group]:
    """A group is as wide as its bars or its name, whichever is wider, so that no two names meet."""
    groups, at = [], 0.0
    for name, members in groupby(bars, key=lambda bar: bar.group):
        count = len(list(members))
        width = max(count * _SLOT, wide[name])
        first = at + (width - count * _SLOT) / 2 + _SLOT / 2
        groups.append(Group(name, at + width / 2, [first + number * _SLOT for number in range(count)], at + width))
        at += width + _APART
    return groups


def draw_floors(name: str, alt: str, bars: Sequence[Bar], gate: float) -> Picture:
    with styled():
        bars = [replace(bar, task=legible(bar.task, 14)) for bar in bars[:_MOST]]
        probe = sheet(1, 1)
        groups = arrange(bars, {bar.group: text_width(probe, bar.group, SMALL, "bold") for bar in bars})
        long = max(text_width(probe, bar.task, SMALL - 0.5) for bar in bars)
        width = groups[-1].right
        figure = sheet(_LEFT + width + _RIGHT, _HEIGHT)
        below = 0.2 if long < _SLOT else min(long, 0.9) * 0.72 + 0.15
        axes = place(figure, _LEFT, 0.08, width, _HEIGHT - 0.08 - 0.24 - below)
        axes.set_xlim(0, width)
        axes.set_ylim(0, max(gate * 1.6, *(bar.value for bar in bars)) * 1.12)
        axes.locator_params(axis="y", nbins=5)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="x", length=0, pad=2)
        places = [at for group in groups for at in group.bars]
        turned: dict[str, Any] = {} if long < _SLOT else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(places, [bar.task for bar in bars], size=SMALL - 0.5, color=INK, **turned)
        _gate(axes, gate)
        for at, bar in zip(places, bars, strict=True):
            _bar(axes, at, bar, gate)
        colours = {bar.group: bar.colour for bar in bars}
        for group in groups:
            middle = (_LEFT + group.middle) / float(figure.get_size_inches()[0])
            figure.text(middle, 0.03, group.name, ha="center", size=SMALL, color=colours[group.name], weight="bold")
        return picture(figure, name, alt)


def _gate(axes: Axes, gate: float) -> None:
    axes.axhline(gate, color=QUIET, linewidth=0.8, dashes=(4, 3), zorder=1)
    axes.annotate(
        f"gate {gate:g}", (1, gate), xycoords=("axes fraction", "data"), xytext=(4, 0), va="center_baseline",
        textcoords="offset points", size=SMALL, color=QUIET, annotation_clip=False,
    )  # fmt: skip


def _bar(axes: Axes, at: float, bar: Bar, gate: float) -> None:
    axes.bar(
        at, bar.value, width=0.72 * _SLOT, linewidth=0.9, edgecolor=bar.colour if bar.control else "none",
        facecolor="white" if bar.control else bar.colour, zorder=2,
    )  # fmt: skip
    axes.annotate(
        f"control  {bar.value:.1f}" if bar.control else f"{bar.value:.1f}",
        (at, max(bar.value, gate) if bar.control else bar.value),
        xytext=(0, 3), textcoords="offset points", ha="center", va="bottom", size=SMALL - 1,
        color=QUIET if bar.control else INK, rotation=90 if bar.control else 0,
    )  # fmt: skip
