"""From a run on footage to the record that its page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.cli.footage_run import FootageRun
from compass_edge.cli.view import meaning
from compass_edge.data.video_film import VideoFilm
from compass_edge.run_page.record import Point, RunRecord


def record_of(
    run: FootageRun,
    summary: Mapping[str, Any],
    *,
    title: str,
    facts: Sequence[tuple[str, str]] = (),
    without: NDArray[np.float64] | None = None,
) -> RunRecord:
    """`without`: the curve of the progress model alone, a value a frame."""
    episode, points = run.footage.episode, run.recorder.points
    film = episode.film if episode is not None else None
    video = film if isinstance(film, VideoFilm) and film.crop is None else None
    annotated = run.annotated
    duration_s = max(episode.frames / episode.fps if episode is not None else 0.0, points[-1][0])
    if summary["outcome"] == "done":  # what has ended stays as it is
        points.append((duration_s, summary["value"]))
    return RunRecord(
        title=title,
        instruction=run.footage.instruction,
        outcome=f"{summary['outcome'] or 'none'}: {meaning(summary['outcome'])}",
        good=summary["outcome"] == "done",
        value=summary["value"],
        verified=summary["verified"],
        duration_s=duration_s,
        plan=run.recorder.plan,
        points=points,
        verdicts=run.recorder.verdicts,
        spans=tuple(run.spans.all),
        models=run.models.names(),
        facts=(*_facts(summary), *facts),
        truth=_bends(annotated.progress(), annotated.fps) if annotated is not None else (),
        without=_bends(without, run.footage.fps) if without is not None else (),
        video=video.path if video is not None else None,
        video_start_s=video.start_s if video is not None else 0.0,
    )


def _facts(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [
        ("steps", f"{summary['satisfied']} of {summary['steps']}"),
        ("verdicts", f"{summary['accepted']} accepted, {summary['rejected']} rejected"),
    ]
    if summary["speed"] is not None:
        facts.append(("speed", f"{summary['speed']:.2f} s of video a second"))
    if summary["age_s"]:
        facts.append(("age", f"{summary['age_s']['median']:.2f} s, 95th percentile {summary['age_s']['p95']:.2f} s"))
    if summary["error"] is not None:
        facts.append(("mean absolute error", f"{summary['error']:.1f} of 100"))
    return facts


def _bends(values: NDArray[np.float64], fps: float) -> list[Point]:
    """Of a value a frame, those between which it is not straight: the same line with fewer points."""
    curve = np.asarray(values, np.float64)
    bent = np.ones(curve.size, bool)
    bent[1:-1] = np.abs(np.diff(curve, 2)) > 1e-6
    return [(float(at / fps), float(curve[at])) for at in np.flatnonzero(bent)]
