"""The sections of the page, in order. Each says how to read it, and which option adds it where it is empty."""

from __future__ import annotations

from collections.abc import Callable

from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.markup import Section
from compass_edge.eval.report.sections import (
    ablation,
    episodes,
    floor,
    forms,
    gap,
    headline,
    latency,
    negatives,
    roles,
    run,
    theorem,
    verifier,
)

SECTIONS: tuple[Callable[[ReportData], Section], ...] = tuple(
    module.section
    for module in (headline, forms, gap, episodes, negatives, ablation, verifier, roles, theorem, floor, latency, run)
)
