"""The curve of a run as SVG: progress over the seconds of the footage, the truth if it is known, and every verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compass_edge.eval.report.markup import words
from compass_edge.run_page.record import Point, RunRecord, Verdict

WIDTH, HEIGHT = 1000, 300
LEFT, RIGHT, TOP, BOTTOM = 40, 14, 22, 30
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_MARKS = 12  # on the axis of seconds at most


def chart(record: RunRecord) -> str:
    last = max(record.duration_s, 0.1)
    parts = [
        f'<svg id="curve" class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{words(f"Progress of {record.title} over {last:.0f} seconds, ending at {record.value:.0f}")}" '
        f'data-left="{LEFT}" data-width="{WIDTH - LEFT - RIGHT}" data-seconds="{last:.3f}">',
        *_steps(record, last),
        *_grid(last),
    ]
    if record.without:
        parts.append(_line(record.without, last, "without"))
    if record.truth:
        parts.append(_line(record.truth, last, "truth"))
    parts.append(_line(record.points, last, "loop"))
    parts += [_mark(verdict, record, last) for verdict in record.verdicts]
    parts.append(f'<line id="head" x1="{LEFT}" x2="{LEFT}" y1="{TOP - 8}" y2="{HEIGHT - BOTTOM}"/>')
    return "\n".join([*parts, "</svg>"])


def legend(record: RunRecord) -> str:
    named = [("loop", "the loop")]
    named += [("truth", "the truth")] * bool(record.truth)
    named += [("without", "the progress model alone, without context")] * bool(record.without)
    keys = [f'<span class="key"><i class="{kind}"></i>{text}</span>' for kind, text in named]
    if any(verdict.accepted for verdict in record.verdicts):
        keys.append('<span class="key"><i class="dot yes"></i>a step verified</span>')
    if not all(verdict.accepted for verdict in record.verdicts):
        keys.append('<span class="key"><i class="dot no"></i>a candidate rejected</span>')
    return f'<p class="legend">{"".join(keys)}</p>'


def across(at_s: float, last: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(at_s / last, 0.0), 1.0)


def up(value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / 100


def spacing(last: float) -> float:
    """Between two marks of an axis of seconds."""
    return next((step for step in _STEPS_S if last / step <= _MARKS), 3600 * math.ceil(last / 3600 / _MARKS))


def seconds_axis(last: float, y: float) -> list[str]:
    step = spacing(last)
    return [
        f'<text class="mark" x="{across(at * step, last):.1f}" y="{y:.1f}" text-anchor="middle">{at * step:g} s</text>'
        for at in range(int(last / step) + 1)
    ]


def _grid(last: float) -> list[str]:
    lines = []
    for value in (0, 25, 50, 75, 100):
        y = up(value)
        lines.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text class="mark" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    return lines + seconds_axis(last, HEIGHT - 8)


def _steps(record: RunRecord, last: float) -> list[str]:
    """The stretch of each step that was completed, and its number at the top."""
    lines, begin = [], 0.0
    for k, step in enumerate(record.plan, 1):
        if step.at_s is None:
            continue
        left, right = across(begin, last), across(step.at_s, last)
        if k % 2:
            height = HEIGHT - TOP - BOTTOM
            lines.append(
                f'<rect class="band" x="{left:.1f}" y="{TOP}" width="{max(right - left, 0):.1f}" height="{height}"/>'
            )
        lines.append(
            f'<text class="mark" x="{(left + right) / 2:.1f}" y="{TOP - 8}" text-anchor="middle">step {k}</text>'
            if right - left > 42
            else f'<text class="mark" x="{(left + right) / 2:.1f}" y="{TOP - 8}" text-anchor="middle">{k}</text>'
        )
        begin = step.at_s
    return lines


def _line(points: Sequence[Point], last: float, kind: str) -> str:
    drawn = " ".join(f"{across(at, last):.1f},{up(value):.1f}" for at, value in points)
    return f'<polyline class="line {kind}" points="{drawn}"/>'


def _mark(verdict: Verdict, record: RunRecord, last: float) -> str:
    """On the level that the step would reach, so that what was accepted lies on the curve."""
    size = max(len(record.plan), 1)
    x, y = across(verdict.at_s, last), up(100 * min(verdict.step, size) / size)
    said = words(f"step {verdict.step}, {verdict.at_s:.1f} s: {verdict.verdict}")
    if verdict.accepted:
        return f'<circle class="yes" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{said}</title></circle>'
    cross = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
    return f'<path class="no" d="{cross}"><title>{said}</title></path>'
