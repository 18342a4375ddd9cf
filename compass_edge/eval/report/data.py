"""What a report shows, as plain values: the page and `--json` are made of the same ones.

A part that was not computed is empty or None; the page then says which option adds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from compass_edge.data.episode import FORMS, Form, Kind
from compass_edge.eval.report.curves import Curves

# How a method comes by its context; it decides the colour.
Context = Literal["loop", "without", "oracle", "chained"]
Column = Literal["state", "sequence", "recurrence", "all"]
COLUMNS: tuple[Column, ...] = (*FORMS, "all")
TITLES: Mapping[str, str] = {
    "state": "State recall",
    "sequence": "Sequence",
    "recurrence": "Recurrence",
    "all": "All",
    "early_stop": "Early stop",
    "extra_steps": "Extra steps",
    "mismatch": "Mismatch",
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and the 95% interval of a bootstrap over episodes where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    episodes: int
    mae: Estimate
    rho: Estimate
    boundary_error: float | None = None  # of the duration, 0 to 100
    matched: float | None = None  # share of boundaries within 5% of the duration, 0 to 1
    step_end_error: Estimate | None = None
    stalled: int | None = None  # episodes; None: not a loop


@dataclass(frozen=True, slots=True)
class Method:
    name: str
    context: Context
    scores: Mapping[Column, Scores]


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
    without: GapCell
    oracle: GapCell
    chained: GapCell
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
class Deviation:
    method: str
    context: Context
    kinds: Mapping[Kind, Estimate]


@dataclass(frozen=True, slots=True)
class Variant:
    """The loop with the expected transition told to everyone, to the Orienter alone, or to nobody."""

    tau: str
    step_end_error: Mapping[Column, Estimate]
    mae: Estimate
    stalled: int
    episodes: int


@dataclass(frozen=True, slots=True)
class Confusion:
    """Candidates by what they were and what V said of them."""

    accepted_true: int
    rejected_true: int
    accepted_early: int
    rejected_early: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """The theorem's terms for a task. Errors, floors and bounds are 0 to 100; eta and lambda are in steps, the rest rates."""

    task: str  # empty: all together
    k: float
    delta_s: float
    delta_q: float
    delta_r: float
    eta: float
    lam: float
    alpha: float | None
    beta: float | None
    gamma: float | None
    floor: float
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
    deviations: Sequence[Deviation] = ()
    negatives: Sequence[Chosen] = ()
    ablation: Sequence[Variant] = ()
    confusion: Confusion | None = None
    bounds: Sequence[Bounds] = ()
    latencies: Sequence[Latency] = ()
    floors: Sequence[TaskFloor] = ()
    gate: float = 4.0
    episodes: Sequence[Mapping[str, Any]] = field(default_factory=tuple)  # a row an episode and method, for machines
