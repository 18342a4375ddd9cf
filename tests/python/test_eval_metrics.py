"""Metrics, against scipy and against cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from eval_film import episode
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compass_edge.errors import UsageError
from compass_edge.eval.metrics import (
    MATCHED,
    average_ranks,
    boundaries,
    end_errors,
    is_stalled,
    mean_absolute_error,
    measure,
    spearman,
)
from compass_edge.eval.result import LoopTrace, Result
from compass_edge.loop.events import Outcome
from compass_edge.loop.progress import UNVERIFIED_CEILING

CURVES = st.lists(st.integers(0, 12).map(lambda value: value * 8.25), min_size=2, max_size=80)


def result(values: object, id: str = "T/0", outcome: Outcome | None = None) -> Result:
    curve = np.asarray(values, np.float64)
    trace = None
    if outcome is not None:
        trace = LoopTrace(np.ones(curve.size, np.int64), np.zeros(curve.size), (), True, (), outcome, 0, {}, {})
    return Result(id, "method", curve, trace)


@given(CURVES)
def test_ranks_and_rho_are_scipys(values: list[float]) -> None:
    assert average_ranks(values).tolist() == stats.rankdata(values).tolist()
    if len(set(values)) > 1:
        assert spearman(values) == pytest.approx(stats.spearmanr(values, range(len(values))).statistic, abs=1e-12)


def test_a_constant_curve_orders_nothing() -> None:
    assert spearman([40.0] * 9) == 0.0
    assert spearman([40.0]) == 0.0


def test_rho_by_hand() -> None:
    assert spearman([1, 2, 3, 4]) == 1.0
    assert spearman([9, 7, 5, 3]) == -1.0
    # Ranks 1 2 4 3 against 1 2 3 4: 1 - 6 (0 + 0 + 1 + 1) / (4 * 15).
    assert spearman([0, 10, 30, 20]) == pytest.approx(0.8)
    # Ranks 1.5 1.5 3.5 3.5: a covariance of 4 over the root of 4 * 5.
    assert spearman([0, 0, 1, 1]) == pytest.approx(4 / 20**0.5)


@given(CURVES, CURVES)
def test_error_is_the_mean_of_absolute_differences(values: list[float], truth: list[float]) -> None:
    size = min(len(values), len(truth))
    by_hand = sum(abs(a - b) for a, b in zip(values, truth, strict=False)) / size
    assert mean_absolute_error(values[:size], truth[:size]) == pytest.approx(by_hand)


def test_boundaries_by_hand() -> None:
    """Four steps of ten frames in 41 frames. The second boundary is called 8 frames late, the last one never."""
    told = episode([10, 20, 30, 40])
    curve = np.interp(np.arange(41), [0, 10, 20, 28, 30, 40], [0, 25, 30, 50, 75, 99])
    assert boundaries(curve, told) * 41 / 100 == pytest.approx([0, 8, 0, 40])
    assert (boundaries(curve, told) <= MATCHED).tolist() == [True, False, True, False]


def test_a_boundary_is_reached_by_a_hair_and_only_the_first_time_counts() -> None:
    told = episode([10, 20])
    curve = np.full(21, 10.0)
    curve[4], curve[12] = 49.75, 100.0  # and down again
    assert boundaries(curve, told) * 21 / 100 == pytest.approx([6, 8])
    curve[4] = 100 * UNVERIFIED_CEILING / 2  # what the loop says of a step that V has not accepted
    assert boundaries(curve, told) * 21 / 100 == pytest.approx([2, 8])


@given(st.integers(1, 6), st.integers(0, 30), st.data())
def test_a_boundary_that_is_never_reached_is_never_matched(size: int, rest: int, data: st.DataObject) -> None:
    ends = sorted(data.draw(st.sets(st.integers(1, 90), min_size=size, max_size=size)))
    told = episode(ends, ends[-1] + 1 + rest)
    missed = boundaries(np.zeros(told.frames), told)
    assert (missed >= 50).all()
    assert (missed <= 100).all()
    curve = data.draw(st.lists(st.floats(0, 100), min_size=told.frames, max_size=told.frames))
    assert (boundaries(curve, told) <= missed).all(), "no curve is worse off for reaching a boundary"


def test_the_true_curve_has_no_error_of_any_kind() -> None:
    told = episode([7, 19, 40], 60)
    scores = measure(result(told.progress()), told)
    assert scores.mae == 0
    assert scores.rho > 0.9
    assert scores.end_errors == pytest.approx([0, 0, 0])
    assert scores.boundaries * 60 / 100 == pytest.approx([0, 0, 0], abs=0.5)
    assert scores.matched.all()


def test_errors_at_the_ends_by_hand() -> None:
    told = episode([10, 20, 30, 40])
    curve = np.full(41, 60.0)
    assert end_errors(curve, told) == pytest.approx([35, 10, 15, 40])


def test_steps_that_the_film_does_not_complete_have_no_boundary() -> None:
    cut = episode([10, 20, 30, 40], 25)
    assert boundaries(np.zeros(25), cut).size == 2
    assert end_errors(np.full(25, 50.0), cut) == pytest.approx([25, 0])
    nothing = episode([], 9)
    assert boundaries(np.zeros(9), nothing).size == 0
    assert end_errors(np.zeros(9), nothing).size == 0


def test_stalled_is_a_loop_that_ends_unverified_on_a_film_that_is_complete() -> None:
    whole, cut = episode([10, 20]), episode([10, 20], 15)
    assert not is_stalled(result(np.zeros(21)), whole), "no loop"
    assert not is_stalled(result(np.zeros(21), outcome="done"), whole)
    for outcome in ("stalled", "incomplete", "ungrounded", "unplanned"):
        assert is_stalled(result(np.zeros(21), outcome=outcome), whole)
    assert not is_stalled(result(np.zeros(15), outcome="incomplete"), cut), "there is nothing left to verify"


@pytest.mark.parametrize("values", [np.zeros(20), np.full(21, np.nan), np.full(21, np.inf)])
def test_a_result_without_a_value_for_each_frame_is_refused(values: object) -> None:
    with pytest.raises(UsageError, match=r"must have a finite value for each of its 21 frames"):
        measure(result(values), episode([10, 20]))
    with pytest.raises(UsageError, match=r"one of 'T/1'"):
        measure(result(np.zeros(21), id="T/1"), episode([10, 20]))
