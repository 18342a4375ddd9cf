"""Which episodes are shown: of each form the loop's best, median and worst; of the negatives all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_edge.data.episode import FORMS, Episode, Form
from compass_edge.eval.diagnosis import WITHOUT
from compass_edge.eval.loop_run import LOOP
from compass_edge.eval.metrics import measure
from compass_edge.eval.report.canvas import LOOP as LOOP_COLOUR
from compass_edge.eval.report.canvas import PLAIN
from compass_edge.eval.report.curves import Curves, Line, Mark
from compass_edge.eval.report.data import TITLES, Chosen
from compass_edge.eval.result import Result
from compass_edge.eval.table import Table, needed

_LETTERS: Mapping[Form, str] = {"state": "S", "sequence": "Q", "recurrence": "R"}


def choose(results: Sequence[Result], episodes: Sequence[Episode], table: Table) -> list[Chosen]:
    if LOOP not in table.methods:
        return []
    errors = {id: scores.mae for id, scores in table.scores(LOOP).items()}
    found = []
    for form in (*FORMS, None):
        ranked = sorted(
            (one for one in episodes if main_form(one) == form and one.id in errors), key=lambda one: errors[one.id]
        )
        for episode, why in _ranks(ranked):
            curves = curves_of(episode, results)
            found.append(Chosen(episode.id, episode.instruction, form, episode.kind, why, errors[episode.id], curves))
    return found


def contrary(results: Sequence[Result], negatives: Sequence[Episode]) -> list[Chosen]:
    loops = {result.episode: result for result in results if result.method == LOOP}
    return [
        Chosen(
            episode.id, episode.instruction, episode.form, episode.kind, TITLES[episode.kind],
            measure(loops[episode.id], episode).mae, curves_of(episode, results),
        )
        for episode in negatives
        if episode.id in loops
    ]  # fmt: skip


def main_form(episode: Episode) -> Form | None:
    return episode.form or next(iter(needed(episode)), None)


def _ranks(ranked: Sequence[Episode]) -> list[tuple[Episode, str]]:
    """No episode twice."""
    if len(ranked) == 1:
        return [(ranked[0], "the only one")]
    if len(ranked) == 2:
        return [(ranked[0], "best"), (ranked[1], "worst")]
    return [(ranked[0], "best"), (ranked[len(ranked) // 2], "median"), (ranked[-1], "worst")] if ranked else []


def curves_of(episode: Episode, results: Sequence[Result]) -> Curves:
    mine = [result for result in results if result.episode == episode.id]
    alone = next((result for result in mine if result.method.endswith(f", {WITHOUT}")), None)
    loop = next((result for result in mine if result.method == LOOP), None)
    lines = [Line("no context", PLAIN, alone.values)] if alone is not None else []
    if loop is not None:
        lines.append(Line("loop", LOOP_COLOUR, loop.values, strong=True))
    rulings = loop.trace.rulings if loop is not None and loop.trace is not None else ()
    return Curves(
        episode.progress(),
        lines,
        episode.fps,
        [step.end for step in episode.truth],
        [
            (begin, "".join(_LETTERS[form] for form in FORMS if form in step.forms))
            for begin, step in zip(episode.begins, episode.truth, strict=True)
            if step.forms and begin < episode.frames
        ],
        [Mark(ruling.frame, ruling.accepted) for ruling in rulings],
    )
