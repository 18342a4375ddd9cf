"""How long the models took."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from compass_edge.eval.report.canvas import INK, LOOP, ORACLE, PLAIN
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.latencies import Strip, draw_latencies
from compass_edge.eval.report.markup import Section, figure, number, table

_ROLES = {"orienter": ("Orienter", LOOP), "prm": ("PRM", PLAIN), "verifier": ("Verifier", ORACLE)}


def section(data: ReportData) -> Section:
    how = (
        "What the calls of each role took together, on the machine named below: a dot is an episode, the line the median. Calls may "
        "have run at the same time, so an episode can be shorter than their sum."
    )
    if not any(latency.seconds for latency in data.latencies):
        return Section("latency", "Latency", how, "", "There is no run of the loop with timed calls.")
    strips, rows = [], []
    for role, (name, colour) in _ROLES.items():
        seconds = [latency.seconds.get(role, 0.0) for latency in data.latencies]
        calls = sum(latency.calls.get(role, 0) for latency in data.latencies)
        strips.append(Strip(name, f"{calls / len(seconds):.3g} calls an episode", seconds, colour))
        rows.append(_row(name, seconds, calls))
    whole = [sum(latency.seconds.values()) for latency in data.latencies]
    strips.append(Strip("All three", "one after the other", whole, INK))
    rows.append(_row("All three", whole, sum(sum(latency.calls.values()) for latency in data.latencies)))
    picture = draw_latencies(
        "latency", "Strips of the seconds that the calls of each role took, a dot an episode.", strips
    )
    head = ["Role", "calls", "ms a call", "median s an episode", "longest s an episode"]
    body = figure(picture, kind="wide") + table(head, rows, kind="lasttotal")
    return Section("latency", "Latency", how, body, pictures=[picture])


def _row(name: str, seconds: Sequence[float], calls: int) -> list[str]:
    each = 1e3 * sum(seconds) / calls if calls else None
    return [name, number(calls, 0), number(each, 2), number(median(seconds), 3), number(max(seconds), 3)]
