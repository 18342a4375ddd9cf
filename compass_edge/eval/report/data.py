"""What a report shows, as plain values: the page and `--json` are made of the same ones.

A part that was not computed is empty or None; the page then says which option adds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from compass_edge.data.episode import Form, Kind
from compass_edge.eval.ablation import Variant
from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.confusion import Confusion
from compass_edge.eval.findings import Findings
from compass_edge.eval.floor import GATE
from compass_edge.eval.negatives import Deviation
from compass_edge.eval.report.curves import Curves
from compass_edge.eval.runner import Failed
from compass_edge.eval.table import Cell, Column

# How a method comes by its context; it decides the colour.
Context = Literal["loop", "frame", "without", "oracle", "chained"]
TITLES: Mapping[str, str] = {
    "state": "State recall",
    "sequence": "Sequence",
    "recurrence": "Recurrence",
    "overall": "All",
    "early_stop": "Early stop",
    "extra_steps": "Extra steps",
    "mismatch": "Mismatch",
}


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    context: Context
    cells: Mapping[Column, Cell]


@dataclass(frozen=True, slots=True)
class GapCell:
    mae: Estimate
    rho: Estimate
    mae_change: float | None = None  # relative to the same model without context: -0.8 is four fifths less
    rho_change: float | None = None


@dataclass(frozen=True, slots=True)
class GapRow:
    """A model three times: without context, with the true one, with its own end points."""

    model: str
    intervals: int
    without: GapCell | None
    oracle: GapCell | None
    chained: GapCell | None
    dots: Sequence[tuple[float, float]] = ()  # error of an interval without context and with it


@dataclass(frozen=True, slots=True)
class Chosen:
    """An episode whose curves are shown, and why it is."""

    episode: str
    instruction: str
    form: Form | None
    kind: Kind
    why: str  # "best", "median", "worst"
    mae: float
    curves: Curves


@dataclass(frozen=True, slots=True)
class Contrary:
    """A method on the negatives."""

    method: str
    context: Context
    kinds: Mapping[Kind, Deviation]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The theorem's terms for a task. Errors, floors and bounds are 0 to 100; eta and lambda are in steps, the rest rates."""

    task: str  # empty: all together
    k: int | None
    delta_s: float | None
    delta_q: float | None
    delta_r: float | None
    eta: float
    lam: float
    alpha: float  # the largest of the steps'; nan: never tried
    beta: float
    gamma: float
    alpha_pooled: float  # over all steps
    beta_pooled: float
    floor: float | None
    floor_error: float | None  # of the best that reads the current frame alone
    floor_holds: bool | None
    bound: float
    bound_error: float
    bound_holds: bool


@dataclass(frozen=True, slots=True)
class Latency:
    """Of an episode, by role."""

    episode: str
    seconds: Mapping[str, float]
    calls: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TaskFloor:
    task: str
    form: Form | None
    value: float
    control: bool


@dataclass(frozen=True, slots=True)
class ReportData:
    title: str
    facts: Mapping[str, Mapping[str, str]]  # of the run, in groups
    notice: str = ""  # what a reader must know before the numbers
    methods: Sequence[Method] = ()
    recovered: float | None = None  # share of the deficit that oracle context would close, 0 to 1
    gap: Sequence[GapRow] = ()
    chosen: Sequence[Chosen] = ()
    deviations: Sequence[Contrary] = ()
    negatives: Sequence[Chosen] = ()
    ablation: Sequence[Variant] = ()
    confusion: Confusion | None = None
    bounds: Sequence[Bounds] = ()
    latencies: Sequence[Latency] = ()
    floors: Sequence[TaskFloor] = ()
    gate: float = GATE
    failures: Sequence[Failed] = ()
    findings: Findings | None = None  # of the simulator's suite
    episodes: Sequence[Mapping[str, Any]] = field(default_factory=tuple)  # a row an episode and method, for machines
