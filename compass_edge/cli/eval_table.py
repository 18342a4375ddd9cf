"""What `compass-edge eval` prints for people: a method a line, a form a column, and a line for each further part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from compass_edge.cli.view import clean
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.table import COLUMNS, Column

_HEADS = {"state": "state", "sequence": "sequence", "recurrence": "recurr.", "overall": "all"}
_WIDE = 9


def as_text(data: ReportData) -> str:
    parts = (_methods, _contrary, _ablation, _others, _alone, _failures)
    return clean_lines([line for part in parts for line in part(data)])


def clean_lines(lines: Sequence[str]) -> str:
    """No control character of a task's name reaches the terminal."""
    return "\n".join(clean(line) for line in lines)


def _number(value: float | None, digits: int = 1) -> str:
    text = "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"
    return f"{text:>{_WIDE}}"


def _named(names: Sequence[str]) -> int:
    return min(max([len(name) for name in names] + [10]), 40) + 2


def _label(name: str, wide: int) -> str:
    shown = name if len(name) <= wide - 2 else name[: wide - 3] + "…"
    return f"{shown:<{wide}}"


def _methods(data: ReportData) -> Iterator[str]:
    if not data.methods:
        return
    columns: list[Column] = [column for column in COLUMNS if any(column in method.cells for method in data.methods)]
    wide = _named([method.name for method in data.methods])
    heads = "".join(f"{_HEADS[column]:>{_WIDE}}" for column in columns)
    yield f"{'':{wide}}{'MAE':>{_WIDE}}{'':{_WIDE * (len(columns) - 1)}}   {'rho':>{_WIDE}}"
    yield f"{'':{wide}}{heads}   {heads}"
    for method in data.methods:
        cells = [method.cells.get(column) for column in columns]
        maes = "".join(_number(cell.mae.value if cell else None) for cell in cells)
        rhos = "".join(_number(cell.rho.value if cell else None, 2) for cell in cells)
        yield f"{_label(method.name, wide)}{maes}   {rhos}"
    counts = "".join(
        f"{max(method.cells[column].episodes for method in data.methods if column in method.cells):>{_WIDE}}"
        for column in columns
    )
    yield f"{'episodes':<{wide}}{counts}"


def _contrary(data: ReportData) -> Iterator[str]:
    kinds = list(dict.fromkeys(kind for line in data.deviations for kind in line.kinds))
    if not kinds:
        return
    wide = _named([line.method for line in data.deviations])
    yield ""
    yield f"{'negatives: mean deviation':<{wide}}" + "".join(f"{kind.replace('_', ' '):>13}" for kind in kinds)
    for line in data.deviations:
        values = (line.kinds[kind].deviation.value if kind in line.kinds else None for kind in kinds)
        yield _label(line.method, max(wide, 25)) + "".join(f"{_number(value):>13}" for value in values)


def _ablation(data: ReportData) -> Iterator[str]:
    if not data.ablation:
        return
    yield ""
    yield f"{'tau: error at step ends':<26}" + "".join(f"{_HEADS[column]:>{_WIDE}}" for column in COLUMNS) + "  stalled"
    for variant in data.ablation:
        errors = "".join(
            _number(variant.cells[column].end_error.value if column in variant.cells else None) for column in COLUMNS
        )
        yield f"{variant.tau:<26}{errors}{variant.cells['overall'].stalled or 0:>9}"


def _others(data: ReportData) -> Iterator[str]:
    loop = next((method.cells["overall"] for method in data.methods
                 if method.context == "loop" and "overall" in method.cells), None)  # fmt: skip
    lines = []
    if loop is not None:
        lines.append(
            f"loop        {loop.matched.value:.0%} of boundaries within 5% of the episode, error at step ends "
            f"{loop.end_error.value:.1f}, {loop.stalled or 0} of {loop.episodes} stalled"
        )
    if data.confusion is not None:
        one = data.confusion
        lines.append(
            f"verifier    {one.true_accepts} true completions accepted and {one.false_rejects} rejected, "
            f"{one.false_accepts} false ones accepted and {one.true_rejects} rejected"
        )
    if data.bounds:
        last = data.bounds[-1]
        floors = [line.floor_holds for line in data.bounds if line.floor_holds is not None]
        said = "" if not floors else f"; floors {'hold' if all(floors) else 'DO NOT HOLD'}"
        hold = "holds" if all(line.bound_holds for line in data.bounds) else "DOES NOT HOLD"
        lines.append(f"theorem     error {last.bound_error:.2f}, bound {last.bound:.2f}: {hold} for every task{said}")
    yield from ["", *lines] if lines else []


def _alone(data: ReportData) -> Iterator[str]:
    """Of the simulator's suite: each role, and the speed."""
    found = data.findings
    if found is None:
        return
    numbers = {key: one.value for key, one in found.numbers.items()}
    yield ""
    yield f"gap closed  {_share(numbers['gap_closed'])} of what the true context would take off the error"
    yield (
        f"verifier    alone: {_share(numbers['verifier_accuracy'])} of {found.verifier.right.of} questions right, "
        f"{_share(numbers['verifier_false_accept'])} of {found.verifier.false_accepts.of} accepted that should not be"
    )
    tried = [(case, rate) for case, rate in found.verifier.cases.items() if rate.of]
    yield "            right: " + ", ".join(f"{case} {rate.hits}/{rate.of}" for case, rate in tried)
    yield (
        f"orienter    alone: {_share(numbers['orienter_plan_exact'])} of {found.orienter.exact.of} plans exact, "
        f"{_share(found.orienter.sized.value)} with the right number of steps"
    )
    yield (
        f"prm         alone: off by {numbers['prm_local_mae']:.3f} within a step (blind {numbers['prm_blind_mae']:.3f}), "
        f"says {numbers['prm_wrong_sentence']:.3f} of steps that were not done"
    )
    if found.agreement.of:
        yield f"executors   {found.agreement.hits} of {found.agreement.of} episodes with the same events in all three"
    if found.speed is not None:
        speed = found.speed
        yield f"speed       {speed.factor:.2f} x real time, {speed.threads} threads, {speed.episodes} episodes"
    if found.live is not None:
        yield f"live        progress {found.live.age_p95_s:.2f} s old (95th percentile), {found.live.missed} frames missed"


def _share(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else "-"


def _failures(data: ReportData) -> Iterator[str]:
    if data.failures:
        yield ""
    for one in data.failures[:10]:
        yield f"failed      {one.method} on {one.episode}: {one.reason}"
    if len(data.failures) > 10:
        yield f"            and {len(data.failures) - 10} more"
