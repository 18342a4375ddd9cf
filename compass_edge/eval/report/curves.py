"""The curves of an episode: the truth, the loop and the model alone, with the verdicts and the moments that need context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compass_edge.eval.report.canvas import (
    INK,
    LOOP,
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

_LINE = 8.5  # of 100: closer labels would touch


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    colour: str
    values: NDArray[np.float64]  # 0 to 100, one a frame
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    frame: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Curves:
    truth: NDArray[np.float64]
    lines: Sequence[Line]  # the strong one comes last, on top
    fps: float
    boundaries: Sequence[int]  # the frames at which steps are complete
    needs: Sequence[tuple[int, str]]  # the frame at which a step begins that needs context, and which: "S", "QR"
    marks: Sequence[Mark] = ()  # V's verdicts, on the strong line


def draw_curves(name: str, alt: str, curves: Curves) -> Picture:
    with styled():
        figure = sheet(4.6, 2.5)
        last = (len(curves.truth) - 1) / curves.fps
        labels = ["truth", *(legible(line.label, 16) for line in curves.lines)]
        right = 0.16 + max(text_width(figure, label, SMALL, "bold") for label in labels)
        axes = place(figure, 0.36, 0.24, 4.6 - 0.36 - right, 1.8)
        axes.set_xlim(0, max(last, 1 / curves.fps))
        axes.set_ylim(0, 100)
        axes.set_yticks((0, 25, 50, 75, 100))
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel("seconds", labelpad=1)
        _steps(axes, curves)
        seconds = np.arange(len(curves.truth)) / curves.fps
        axes.plot(seconds, curves.truth, color=INK, linewidth=0.9, zorder=3, clip_on=False)
        for line in curves.lines:
            axes.plot(
                seconds, line.values, color=line.colour, linewidth=1.9 if line.strong else 1.3, clip_on=False,
                alpha=1.0 if line.strong else 0.85, zorder=4 if line.strong else 2,
            )  # fmt: skip
        _verdicts(axes, curves)
        _labels(axes, curves, last)
        return picture(figure, name, alt)


def _steps(axes: Axes, curves: Curves) -> None:
    for frame in curves.boundaries:
        if frame < len(curves.truth):
            axes.axvline(frame / curves.fps, color=RULE, linewidth=0.8, zorder=1)
    for frame, forms in curves.needs:
        at = frame / curves.fps
        axes.plot((at, at), (100, 104), color=QUIET, linewidth=1.2, clip_on=False, solid_capstyle="butt")
        axes.text(at, 105, forms, size=SMALL - 1, color=QUIET, ha="center" if frame else "left", va="bottom")


def _verdicts(axes: Axes, curves: Curves) -> None:
    strong = next((line for line in curves.lines if line.strong), None)
    if strong is None:
        return
    for mark in curves.marks:
        frame = min(mark.frame, len(strong.values) - 1)
        at = (frame / curves.fps, strong.values[frame])
        if mark.accepted:
            axes.plot(*at, "o", markersize=5, color=LOOP, markeredgecolor="white", markeredgewidth=0.8, zorder=6,
                      clip_on=False)  # fmt: skip
        else:
            axes.plot(*at, "x", markersize=5.5, color=INK, markeredgewidth=1.4, zorder=6, clip_on=False)


def _labels(axes: Axes, curves: Curves, last: float) -> None:
    """At the end of each curve, moved apart where the ends meet."""
    ends = [("truth", INK, float(curves.truth[-1]), False)]
    ends += [(legible(line.label, 16), line.colour, float(line.values[-1]), line.strong) for line in curves.lines]
    wanted = [end[2] for end in ends]
    for at, (label, colour, _, strong) in zip(spread(wanted, _LINE), ends, strict=True):
        axes.annotate(
            label, (last, at), xytext=(5, 0), textcoords="offset points", size=SMALL, color=colour,
            va="center_baseline", weight="bold" if strong else "normal", annotation_clip=False,
        )  # fmt: skip


def spread(wanted: Sequence[float], apart: float, low: float = 0.0, high: float = 100.0) -> list[float]:
    """Places near the wanted ones, in their order, none closer than `apart`, all within the limits if they fit."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    places: list[float] = []
    for rank, at in enumerate(order):
        ceiling = high - apart * (len(order) - 1 - rank)
        place = max(min(wanted[at], ceiling), low)
        places.append(max(place, places[-1] + apart) if places else place)
    spread_out = [0.0] * len(wanted)
    for at, place in zip(order, places, strict=True):
        spread_out[at] = place
    return spread_out
