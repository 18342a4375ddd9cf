"""How long the calls of each role took, episode by episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compass_edge.eval.report.canvas import (
    BODY,
    GROUND,
    INK,
    QUIET,
    SMALL,
    Picture,
    picture,
    place,
    sheet,
    styled,
    text_width,
)

_ROW = 0.42
_UNITS = {"s": "seconds", "ms": "milliseconds", "µs": "microseconds"}


@dataclass(frozen=True, slots=True)
class Strip:
    label: str
    detail: str
    seconds: Sequence[float]  # one an episode
    colour: str


def draw_latencies(name: str, alt: str, strips: Sequence[Strip]) -> Picture:
    unit, scale = unit_of(max([1e-9, *(value for strip in strips for value in strip.seconds)]))
    with styled():
        height = _ROW * len(strips) + 0.5
        figure = sheet(7.6, height)
        named = 0.2 + max(
            max(text_width(figure, strip.label, BODY, "bold"), text_width(figure, strip.detail, SMALL))
            for strip in strips
        )
        axes = place(figure, named, 0.04, 7.6 - named - 1.05, _ROW * len(strips))
        longest = max(value for strip in strips for value in strip.seconds) * scale
        axes.set_xlim(0, (longest or 1.0) * 1.03)
        axes.set_ylim(len(strips) - 0.5, -0.5)
        axes.set_yticks(())
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{_UNITS[unit]} of model calls an episode")
        scattered = np.random.default_rng(0)  # only so that dots do not hide each other
        for at, strip in enumerate(strips):
            top = 1 - (0.04 + (at + 0.5) * _ROW) / height
            figure.text(0, top + 0.01, strip.label, va="bottom", weight="bold")
            figure.text(0, top - 0.01, strip.detail, va="top", size=SMALL, color=QUIET)
            values = np.asarray(strip.seconds) * scale
            axes.axhspan(at - 0.36, at + 0.36, color=GROUND, linewidth=0, zorder=0)
            axes.scatter(
                values, at + scattered.uniform(-0.22, 0.22, len(values)), s=12, color=strip.colour, alpha=0.65,
                linewidth=0, zorder=2, clip_on=False,
            )  # fmt: skip
            middle = float(np.median(values))
            axes.plot((middle, middle), (at - 0.36, at + 0.36), color=INK, linewidth=1.6, zorder=3)
            axes.annotate(
                f"median {middle:.3g} {unit}", (1, at), xycoords=("axes fraction", "data"), xytext=(6, 0),
                textcoords="offset points", size=SMALL, va="center_baseline", annotation_clip=False,
            )  # fmt: skip
        return picture(figure, name, alt)


def unit_of(seconds: float) -> tuple[str, float]:
    """A unit in which the largest value reads well, and how many of it are a second."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return unit, scale
    return "µs", 1e6
