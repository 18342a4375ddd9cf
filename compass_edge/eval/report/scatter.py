"""The scatter of the context gap: a dot an interval, at its error without context and with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compass_edge.eval.report.canvas import INK, QUIET, RULE, SMALL, Picture, picture, place, sheet, styled


@dataclass(frozen=True, slots=True)
class Dots:
    label: str
    colour: str
    without: Sequence[float]
    with_context: Sequence[float]


def draw_scatter(name: str, alt: str, clouds: Sequence[Dots]) -> Picture:
    from_all = [value for cloud in clouds for value in (*cloud.without, *cloud.with_context)]
    limit = max(5.0, *from_all) * 1.05
    with styled():
        figure = sheet(4.0, 4.0)
        axes = place(figure, 0.52, 0.12, 3.36, 3.36)
        axes.set_xlim(0, limit)
        axes.set_ylim(0, limit)
        axes.set_aspect("equal")
        axes.plot((0, limit), (0, limit), color=INK, linewidth=0.8)
        axes.grid(color=RULE, linewidth=0.5, alpha=0.6)
        axes.set_axisbelow(True)
        for cloud in clouds:
            axes.scatter(
                cloud.without, cloud.with_context, s=15, color=cloud.colour, alpha=0.55, linewidth=0, zorder=3,
                clip_on=False,
            )  # fmt: skip
        axes.locator_params(nbins=6)
        axes.set_xlabel("error without context")
        axes.set_ylabel("error with context")
        for words, above in (("context hurt", True), ("context helped", False)):
            axes.annotate(
                words, (0.8, 0.8), xycoords="axes fraction", xytext=(-6, 6) if above else (6, -6), color=QUIET,
                textcoords="offset points", rotation=45, ha="center", va="center", size=SMALL,
            )  # fmt: skip
        return picture(figure, name, alt)
