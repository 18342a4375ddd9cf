"""The ablation of the expected transition tau: told to everybody, kept from V, or never written at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from compass_edge.data.episode import Episode
from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.loop_run import LOOP, Executor
from compass_edge.eval.method import LoopMethod
from compass_edge.eval.result import Result
from compass_edge.eval.table import COLUMNS, Cell, Column, Table
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings, Tau

TAUS: tuple[Tau, ...] = get_args(Tau)


@dataclass(frozen=True, slots=True)
class Variant:
    tau: Tau
    cells: Mapping[Column, Cell]
    rise: Mapping[Column, Estimate]  # of the end-of-step error over "everywhere"; paired
    planned: float  # mean number of steps of the final plan: the paper finds that tau leaves it as it is


def variant_name(tau: Tau, loop: str = LOOP) -> str:
    """The loop as it is keeps its name, so that its results are shared with the other tables."""
    return loop if tau == "everywhere" else f"{loop}, tau {tau}"


def ablation_methods(
    make: Callable[[], Models],
    settings: Settings | None = None,
    executor: Executor = "sequential",
    *,
    loop: str = LOOP,
    names: Mapping[str, str] | None = None,
) -> tuple[LoopMethod, ...]:
    """The three to run."""
    return tuple(
        LoopMethod(make, settings, executor, name=variant_name(tau, loop), tau=tau, names=names) for tau in TAUS
    )


def ablation(results: Iterable[Result], episodes: Iterable[Episode], *, loop: str = LOOP) -> list[Variant]:
    """Compares those of the three whose results are there. Other methods are passed over."""
    taus = {variant_name(tau, loop): tau for tau in TAUS}
    mine = [result for result in results if result.method in taus]
    table = Table(mine, episodes)
    full = variant_name("everywhere", loop)
    variants = []
    for method in sorted(table.methods, key=list(taus).index):
        plans = [len(one.trace.plan) for one in mine if one.method == method and one.trace is not None]
        rise = (
            {column: table.difference(method, full, "end_error", column) for column in COLUMNS}
            if full in table.methods
            else {}
        )
        cells = {column: table.cell(method, column) for column in COLUMNS}
        variants.append(Variant(taus[method], cells, rise, sum(plans) / max(len(plans), 1)))
    return variants
