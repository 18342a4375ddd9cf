"""From results to the report: the right method in the right row, and the right episodes in the pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from compass_edge.data.episode import Episode, Form, StepTruth
from compass_edge.data.film import Picture
from compass_edge.eval.diagnosis import CHAINED, ORACLE, WITHOUT, method_name
from compass_edge.eval.floor import FRAME_ALONE, floors
from compass_edge.eval.loop_run import LOOP
from compass_edge.eval.report.chosen import curves_of
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.gather import context_of, gather, label_methods
from compass_edge.eval.report.plain import plain
from compass_edge.eval.result import LoopTrace, Result, Ruling
from compass_edge.eval.runner import Failed
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Ticks

FRAMES = 40
PRM = "prm weights=1"


class Blank:
    """A film that nobody looks at."""

    key, frames = "blank", FRAMES

    def pictures(self, every: int = 1, stop: int | None = None) -> Iterator[tuple[int, Picture]]:  # noqa: ARG002
        raise AssertionError

    def ticks(self, settings: Settings, stop: int | None = None) -> Ticks:  # noqa: ARG002
        raise AssertionError


def episode(id: str, form: Form = "state", ends: tuple[int, ...] = (20, 30)) -> Episode:
    steps = tuple(StepTruth(f"part {k}", end, (form,)) for k, end in enumerate(ends))
    return Episode(id, id.partition("/")[0], "do it", Blank(), FRAMES, 10.0, steps, form)


def result(of: Episode, method: str, off: float, rulings: tuple[Ruling, ...] = ()) -> Result:
    """A curve that is off by so much everywhere, but where that would leave the scale."""
    truth = of.progress()
    values: NDArray[np.float64] = np.where(truth + off <= 100, truth + off, truth - off)
    trace = None
    if method.startswith(LOOP):
        local = values / 100 * max(of.size, 1) - (of.active() - 1)  # so that the value follows from the trace
        seconds, calls = {"orienter": 2.0, "prm": 1.0}, {"orienter": 2, "prm": 9}
        trace = LoopTrace(of.active(), local, ("a", "b"), True, rulings, "done", len(rulings), seconds, calls)
    return Result(of.id, method, values, trace)


def four(of: Episode, loop: float) -> list[Result]:
    return [
        result(of, method_name(PRM, WITHOUT), 20.0),
        result(of, method_name(PRM, ORACLE), 4.0),
        result(of, method_name(PRM, CHAINED), 8.0),
        result(of, LOOP, loop, (Ruling(1, 12, False, False), Ruling(1, 22, True, True))),
    ]


EPISODES = [episode(f"S1/{seed}") for seed in range(5)] + [episode("R1/0", "recurrence", (10, 20, 30))]
ERRORS = (3.0, 9.0, 1.0, 7.0, 5.0, 6.0)
RESULTS = [one for of, error in zip(EPISODES, ERRORS, strict=True) for one in four(of, error)]


@pytest.fixture(scope="module")
def data() -> ReportData:
    return gather(RESULTS, EPISODES, {"Data": {"hash": "x"}}, title="t")


def test_methods_are_told_apart() -> None:
    assert [context_of(one.method) for one in RESULTS[:4]] == ["without", "oracle", "chained", "loop"]
    assert context_of(f"{LOOP}, tau nowhere") == "loop"


def test_a_model_is_called_by_its_first_word_where_that_is_enough() -> None:
    assert list(label_methods([method_name(PRM, WITHOUT), LOOP]).values()) == [f"prm, {WITHOUT}", LOOP]
    two = [method_name("prm a", WITHOUT), method_name("prm b", WITHOUT)]
    assert list(label_methods(two).values()) == two
    digested = method_name("tiny-prm@30b2943f3cbabf00 (whole)", WITHOUT)
    assert label_methods([digested]) == {digested: f"tiny-prm, {WITHOUT}"}
    assert label_methods([f"{LOOP}, tau nowhere"]) == {f"{LOOP}, tau nowhere": f"{LOOP}, tau nowhere"}


def test_cells_and_gap(data: ReportData) -> None:
    assert [method.context for method in data.methods] == ["without", "oracle", "chained", "loop"]
    assert set(data.methods[0].cells) == {"state", "recurrence", "overall"}  # a column without episodes is left out
    assert data.methods[3].cells["overall"].mae.value == pytest.approx(np.mean(ERRORS))
    (row,) = data.gap
    assert (row.model, row.intervals) == ("prm", 5 * 2 + 3)
    assert row.without is not None
    assert row.oracle is not None
    assert row.oracle.mae_change == pytest.approx(-0.8)
    assert row.without.mae_change is None
    assert all(dot == pytest.approx((20.0, 4.0)) for dot in row.dots)


def test_the_share_of_the_deficit_that_the_loop_closes(data: ReportData) -> None:
    assert data.recovered == pytest.approx((20 - np.mean(ERRORS)) / (20 - 4))
    perfect = [one for one in RESULTS if not one.method.endswith(WITHOUT)]
    perfect += [result(of, method_name(PRM, WITHOUT), 4.2) for of in EPISODES]
    assert gather(perfect, EPISODES, {}, title="t").recovered is None  # nothing to close


def test_best_median_and_worst_are_shown(data: ReportData) -> None:
    shown = [(chosen.form, chosen.why, chosen.episode) for chosen in data.chosen]
    assert shown == [
        ("state", "best", "S1/2"),
        ("state", "median", "S1/4"),
        ("state", "worst", "S1/1"),
        ("recurrence", "the only one", "R1/0"),
    ]
    assert [chosen.mae for chosen in data.chosen] == pytest.approx([1.0, 5.0, 9.0, 6.0])


def test_curves_have_the_truth_the_model_alone_and_the_loop() -> None:
    of = EPISODES[-1]
    curves = curves_of(of, RESULTS)
    assert [(line.label, line.strong) for line in curves.lines] == [("no context", False), ("loop", True)]
    np.testing.assert_array_equal(curves.truth, of.progress())
    assert list(curves.boundaries) == [10, 20, 30]
    assert list(curves.needs) == [(0, "R"), (10, "R"), (20, "R")]
    assert [(mark.frame, mark.accepted) for mark in curves.marks] == [(12, False), (22, True)]


def test_negatives_stay_out_of_the_forms(data: ReportData) -> None:
    cut = replace(episode("E1/0", ends=(20, 90)), kind="early_stop")
    more = gather([*RESULTS, *four(cut, 2.0)], [*EPISODES, cut], {}, title="t")
    assert [method.cells for method in more.methods] == [method.cells for method in data.methods]
    assert [line.context for line in more.deviations] == ["without", "oracle", "chained", "loop"]
    assert more.deviations[3].kinds["early_stop"].deviation.value == pytest.approx(2.0)
    assert [(chosen.episode, chosen.why) for chosen in more.negatives] == [("E1/0", "Early stop")]
    only = gather(four(cut, 2.0), [cut], {}, title="t")
    assert (only.methods, only.gap, only.chosen, only.bounds) == ([], [], [], [])
    assert only.deviations[0].method == f"prm, {WITHOUT}"


def test_ablated_loops_have_a_table_of_their_own(data: ReportData) -> None:
    ablated = [result(of, f"{LOOP}, tau {tau}", 10.0) for of in EPISODES for tau in ("orienter", "nowhere")]
    more = gather([*RESULTS, *ablated], EPISODES, {}, title="t")
    assert [variant.tau for variant in more.ablation] == ["everywhere", "orienter", "nowhere"]
    assert [method.name for method in more.methods] == [method.name for method in data.methods]
    assert data.ablation == ()
    assert more.confusion == data.confusion


def test_verdicts_and_latency(data: ReportData) -> None:
    assert data.confusion is not None
    assert (data.confusion.true_accepts, data.confusion.true_rejects) == (6, 6)
    assert len(data.latencies) == len(EPISODES)
    assert data.latencies[0].seconds == {"orienter": 2.0, "prm": 1.0}


def test_terms_stand_beside_the_floors_of_their_tasks(data: ReportData) -> None:
    assert [line.task for line in data.bounds] == ["R1", "S1", ""]
    assert all(line.bound_holds and line.floor is None for line in data.bounds)
    alike = floors(EPISODES, [[("same", [0.0])] * FRAMES] * len(EPISODES))  # nothing can be seen at all
    told = gather(RESULTS, EPISODES, {}, title="t", floors=(alike, EPISODES))
    both, whole = told.bounds[:2], told.bounds[-1]
    for line in both:
        assert line.floor == pytest.approx(alike.tasks[line.task].floor)
        assert line.floor_holds
    weights = [alike.tasks[line.task].frames for line in both]
    assert whole.floor == pytest.approx(np.average([line.floor or 0.0 for line in both], weights=weights))
    assert (both[0].delta_s, both[1].delta_r) == (0.0, 0.0)
    assert both[0].delta_r == pytest.approx(both[0].floor)
    assert {(floor.task, floor.form, floor.control) for floor in told.floors} == {
        ("S1", "state", False),
        ("R1", "recurrence", False),
    }


def test_json_holds_no_nan_and_no_curve(data: ReportData) -> None:
    broken = replace(data, recovered=math.nan, failures=[Failed("m", "e", "why")])
    text = json.dumps(plain(broken), allow_nan=False)
    values = json.loads(text)
    assert values["recovered"] is None
    assert values["failures"] == [{"method": "m", "episode": "e", "reason": "why"}]
    assert "curves" not in values["chosen"][0]
    assert "dots" not in values["gap"][0]
    assert len(values["episodes"]) == 4 * len(EPISODES)


def test_the_floor_is_a_row_and_no_model() -> None:
    whole = [episode("S1/0"), episode("S1/1")]
    curves = [result(one, method, off) for one in whole for method, off in ((FRAME_ALONE, 9.0), (LOOP, 2.0))]
    data = gather(curves, whole, {}, title="a run")
    assert [(method.name, method.context) for method in data.methods] == [(FRAME_ALONE, "frame"), (LOOP, "loop")]
    assert data.gap == []
    assert data.methods[0].cells["overall"].mae.value == pytest.approx(9.0)
