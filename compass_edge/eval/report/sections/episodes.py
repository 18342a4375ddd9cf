"""Curves of chosen episodes."""

from __future__ import annotations

from collections.abc import Sequence

from compass_edge.data.episode import FORMS
from compass_edge.eval.report.canvas import Picture
from compass_edge.eval.report.curves import draw_curves
from compass_edge.eval.report.data import TITLES, Chosen, ReportData
from compass_edge.eval.report.markup import Section, figure, number, words

LEGEND = (
    "The thin line is the truth. Dots are completions that the Verifier accepted, crosses those it rejected. Vertical rules are "
    "the true ends of steps; a tick above marks a step that needs context: S what happened before, Q where in the sequence, "
    "R which occurrence."
)


def section(data: ReportData) -> Section:
    body, pictures = "", []
    for form in (*FORMS, None):
        shown = [chosen for chosen in data.chosen if chosen.form == form]
        if shown:
            markup, drawn = gallery(shown, f"curves-{form or 'other'}")
            body += f"<h3>{TITLES[form] if form else 'No form given'}</h3>{markup}"
            pictures += drawn
    return Section(
        "episodes",
        "Curves",
        f"The loop's best, median and worst episode of each form. {LEGEND}",
        body,
        "There is no run of the loop to show curves of.",
        pictures,
    )


def gallery(shown: Sequence[Chosen], name: str) -> tuple[str, list[Picture]]:
    figures, pictures = [], []
    for count, chosen in enumerate(shown, 1):
        alt = f"Progress over time in episode {chosen.episode}: truth, {', '.join(line.label for line in chosen.curves.lines)}."
        pictures.append(draw_curves(f"{name}-{count}", alt, chosen.curves))
        caption = (
            f'<b>{words(chosen.episode)}</b> <span class="why">{words(chosen.why)}</span> '
            f"MAE {number(chosen.mae)}<br>{words(_short(chosen.instruction))}"
        )
        figures.append(figure(pictures[-1], caption))
    return f'<div class="grid">{"".join(figures)}</div>', pictures


def _short(text: str, longest: int = 160) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
