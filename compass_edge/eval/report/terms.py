"""The theorem's terms as rows of a table: those of the loop beside the floors of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_edge.data.episode import FORMS, Episode
from compass_edge.eval.floor import Floors
from compass_edge.eval.report.data import Bounds
from compass_edge.eval.result import Result
from compass_edge.eval.theorem import FloorCheck, Terms, check_floors, measure_terms


def bounds_of(
    loops: Sequence[Result], episodes: Sequence[Episode], floors: tuple[Floors, Sequence[Episode]] | None
) -> list[Bounds]:
    """The first bound is checked on the best estimate that the current frame allows: it errs least, so that all others hold too."""
    known = {episode.id: episode for episode in episodes}
    if not any(known[one.episode].size for one in loops if one.episode in known):
        return []
    checks = {}
    if floors is not None:
        checks = {check.task: check for check in check_floors(floors[0], floors[1], floors[0].best_frame_estimate)}
    return [_row(terms, checks, floors[0] if floors is not None else None) for terms in measure_terms(loops, episodes)]


def _row(terms: Terms, checks: Mapping[str, FloorCheck], floors: Floors | None) -> Bounds:
    deltas, floor, error, holds = _floor(terms.task, checks, floors)
    return Bounds(
        task=terms.task,
        k=terms.size or None,
        delta_s=deltas[0],
        delta_q=deltas[1],
        delta_r=deltas[2],
        eta=terms.eta,
        lam=terms.lam,
        alpha=terms.alpha,
        beta=terms.beta,
        gamma=terms.gamma.value,
        alpha_pooled=terms.early.value,
        beta_pooled=terms.false_accepts.value,
        floor=floor,
        floor_error=error,
        floor_holds=holds,
        bound=terms.bound,
        bound_error=terms.error,
        bound_holds=terms.holds,
    )


def _floor(
    task: str, checks: Mapping[str, FloorCheck], floors: Floors | None
) -> tuple[tuple[float | None, ...], float | None, float | None, bool | None]:
    """Of all tasks together: the means over their frames."""
    chosen = [] if floors is None else [one for name, one in floors.tasks.items() if task in (name, "")]
    frames = sum(one.frames for one in chosen)
    if not frames:
        return (None, None, None), None, None, None
    deltas = tuple(sum(one.frames * one.deltas.get(form, 0.0) for one in chosen) / frames for form in FORMS)
    error = sum(one.frames * checks[one.task].error for one in chosen) / frames
    return deltas, sum(deltas), error, all(checks[one.task].holds for one in chosen)
