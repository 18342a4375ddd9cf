"""The lanes of a run as SVG: when O, P and V were at work, in the seconds that it took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compass_edge.loop.events import Role
from compass_edge.loop.lanes import ROLES
from compass_edge.run_page.chart import LEFT, RIGHT, WIDTH, across, seconds_axis
from compass_edge.run_page.spans import Span

_NAMES: dict[Role, str] = {"orienter": "O", "prm": "P", "verifier": "V"}
_ROW, _BAR, _TOP = 30, 18, 6
_NARROWEST = 0.8  # of a bar, and of a gap between two


def lanes(spans: Iterable[Span]) -> str:
    """Empty when no model was asked."""
    known = sorted(spans, key=lambda span: span.began_ns)
    if not known:
        return ""
    last = max(span.ended_ns for span in known) / 1e9
    height = _TOP + _ROW * len(ROLES) + 24
    parts = [
        f'<svg class="chart lanes" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="When O, P and V were busy">'
    ]
    for row, role in enumerate(ROLES):
        y = _TOP + _ROW * row
        parts.append(f'<text class="lane" x="{LEFT - 14}" y="{y + 14}" text-anchor="end">{_NAMES[role]}</text>')
        parts.append(f'<rect class="idle" x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{_BAR}"/>')
        for left, right, calls, busy_s in _bars((span for span in known if span.role == role), last):
            told = f"{calls} call{'s' * (calls != 1)}, {busy_s:.2f} s"
            parts.append(
                f'<rect class="{role}" x="{left:.1f}" y="{y}" width="{max(right - left, _NARROWEST):.1f}" '
                f'height="{_BAR}"><title>{told}</title></rect>'
            )
    return "\n".join([*parts, *seconds_axis(last, height - 8), "</svg>"])


def _bars(spans: Iterable[Span], last: float) -> Iterator[tuple[float, float, int, float]]:
    """Those that would touch are one: a run has thousands of calls, and a page a thousand pixels."""
    bar: tuple[float, float, int, float] | None = None
    for span in spans:
        left, right = across(span.began_ns / 1e9, last), across(span.ended_ns / 1e9, last)
        seconds = (span.ended_ns - span.began_ns) / 1e9
        if bar is not None and left - bar[1] < _NARROWEST:
            bar = (bar[0], max(bar[1], right), bar[2] + span.calls, bar[3] + seconds)
            continue
        if bar is not None:
            yield bar
        bar = (left, right, span.calls, seconds)
    if bar is not None:
        yield bar
