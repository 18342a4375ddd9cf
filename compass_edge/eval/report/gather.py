"""From results to the report: who is which method, and every table of the evaluation in one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from compass_edge.data.episode import Episode
from compass_edge.eval.ablation import TAUS, ablation, variant_name
from compass_edge.eval.blind import BLIND
from compass_edge.eval.confusion import confusion
from compass_edge.eval.diagnosis import CHAINED, ORACLE, WITHOUT, Diagnosis, method_name, pairs
from compass_edge.eval.findings import Findings
from compass_edge.eval.floor import FRAME_ALONE, Floors
from compass_edge.eval.loop_run import LOOP
from compass_edge.eval.negatives import NEGATIVES, deviations
from compass_edge.eval.report.chosen import choose, contrary
from compass_edge.eval.report.data import Context, Contrary, GapCell, GapRow, Latency, Method, ReportData, TaskFloor
from compass_edge.eval.report.terms import bounds_of
from compass_edge.eval.result import Result
from compass_edge.eval.runner import Failed
from compass_edge.eval.table import COLUMNS, Cell, Table, needed

_SETTINGS: Mapping[str, Context] = {WITHOUT: "without", ORACLE: "oracle", CHAINED: "chained"}
_ABLATED = {variant_name(tau) for tau in TAUS} - {LOOP}
_LITTLE = 0.5  # of 100: less than that is no deficit, and a share of it says nothing


def gather(
    results: Sequence[Result],
    episodes: Sequence[Episode],
    facts: Mapping[str, Mapping[str, str]],
    *,
    title: str,
    notice: str = "",
    floors: tuple[Floors, Sequence[Episode]] | None = None,  # and the episodes that they are of
    failures: Sequence[Failed] = (),
    findings: Findings | None = None,
) -> ReportData:
    whole = [episode for episode in episodes if episode.kind not in NEGATIVES]
    ids = {episode.id for episode in whole}
    mine = [result for result in results if result.episode in ids]
    table = Table([result for result in mine if result.method not in _ABLATED], whole)
    labels = label_methods(table.methods if table.methods else {result.method for result in results})
    loops = [result for result in mine if result.method == LOOP]
    kept = [result for result in results if result.method not in _ABLATED]
    rulings = confusion(loops)
    return ReportData(
        title,
        facts,
        notice,
        methods=[
            Method(
                labels[name],
                context_of(name),
                {column: cell for column in COLUMNS if (cell := table.cell(name, column)).episodes},
            )
            for name in table.methods
        ],
        recovered=_recovered(table),
        gap=[_gap(model, _short(model, labels), table, mine, whole) for model in _models(table.methods)],
        chosen=choose(kept, whole, table),
        deviations=_contrary(kept, episodes, labels),
        negatives=contrary(kept, [episode for episode in episodes if episode.kind in NEGATIVES]),
        ablation=ablation(mine, whole) if any(result.method in _ABLATED for result in mine) else (),
        confusion=rulings if any(result.trace and result.trace.rulings for result in loops) else None,
        bounds=bounds_of(loops, whole, floors),
        latencies=[Latency(one.episode, one.trace.seconds, one.trace.calls) for one in loops if one.trace is not None],
        floors=_floors(floors, whole),
        failures=failures,
        findings=findings,
        episodes=_rows(table, whole, labels),
    )


def context_of(method: str) -> Context:
    if method == FRAME_ALONE:
        return "frame"
    return next((context for setting, context in _SETTINGS.items() if method.endswith(f", {setting}")), "loop")


def label_methods(methods: Iterable[str]) -> dict[str, str]:
    """A model's name holds its digest and settings, for the cache. To people it is what comes before, where that tells them apart."""
    methods = list(methods)
    models = _models(methods)
    short = {model: model.partition(" ")[0].partition("@")[0] or model for model in models}
    if len(set(short.values())) < len(short):
        short = {model: model for model in models}
    labels = {}
    for method in methods:
        model, found, setting = method.rpartition(", ")
        labels[method] = f"{short[model]}, {setting}" if found and model in short else method
    return labels


def _short(model: str, labels: Mapping[str, str]) -> str:
    return next(label.rpartition(", ")[0] for name, label in labels.items() if name.rpartition(", ")[0] == model)


def _models(methods: Iterable[str]) -> list[str]:
    """Those that were diagnosed, in order."""
    return list(
        dict.fromkeys(method.rpartition(", ")[0] for method in methods if context_of(method) not in ("loop", "frame"))
    )


def _recovered(table: Table) -> float | None:
    """Of what the true context takes off the error of the loop's own model."""
    models = [model for model in _models(table.methods) if model != BLIND]
    if LOOP not in table.methods or len(models) != 1:
        return None
    names = [method_name(models[0], setting) for setting in (WITHOUT, ORACLE)]
    if any(name not in table.methods for name in names):
        return None
    without, oracle, loop = (table.cell(name).mae.value for name in (*names, LOOP))
    return (without - loop) / (without - oracle) if without - oracle > _LITTLE else None


def _gap(model: str, label: str, table: Table, results: Sequence[Result], episodes: Sequence[Episode]) -> GapRow:
    names = [method_name(model, setting) for setting in (WITHOUT, ORACLE, CHAINED)]
    first, oracle, chained = (table.cell(name) if name in table.methods else None for name in names)
    by = {(result.episode, result.method): result for result in results}
    found = []
    for episode in episodes:
        three = [by[episode.id, name] for name in names if (episode.id, name) in by]
        if len(three) == len(names):
            found += pairs(Diagnosis(*three), episode)
    return GapRow(
        label,
        len(found),
        _gap_cell(first, None),
        _gap_cell(oracle, first),
        _gap_cell(chained, first),
        [(pair.without, pair.oracle) for pair in found],
    )


def _gap_cell(cell: Cell | None, first: Cell | None) -> GapCell | None:
    if cell is None:
        return None
    if first is None:
        return GapCell(cell.mae, cell.rho)
    return GapCell(
        cell.mae,
        cell.rho,
        cell.mae.value / first.mae.value - 1 if first.mae.value > _LITTLE else None,
        cell.rho.value / first.rho.value - 1 if first.rho.value > 0 else None,
    )


def _contrary(results: Sequence[Result], episodes: Sequence[Episode], labels: Mapping[str, str]) -> list[Contrary]:
    lines: dict[str, Contrary] = {}
    for one in deviations(results, episodes):
        before = lines[one.method].kinds if one.method in lines else {}
        lines[one.method] = Contrary(
            labels.get(one.method, one.method), context_of(one.method), {**before, one.kind: one}
        )
    return list(lines.values())


def _floors(floors: tuple[Floors, Sequence[Episode]] | None, episodes: Sequence[Episode]) -> list[TaskFloor]:
    if floors is None:
        return []
    forms = {episode.task: episode.form for episode in (*floors[1], *episodes)}
    return [
        TaskFloor(task, forms.get(task), floor.floor, not floor.above_gate) for task, floor in floors[0].tasks.items()
    ]


def _rows(table: Table, episodes: Sequence[Episode], labels: Mapping[str, str]) -> list[dict[str, object]]:
    known = {episode.id: episode for episode in episodes}
    return [
        {
            "episode": id,
            "task": known[id].task,
            "forms": list(needed(known[id])),
            "method": labels[method],
            "mae": scores.mae,
            "rho": scores.rho,
            "boundary_errors": scores.boundaries.tolist(),
            "end_errors": scores.end_errors.tolist(),
            "stalled": scores.stalled,
        }
        for method in table.methods
        for id, scores in table.scores(method).items()
    ]
