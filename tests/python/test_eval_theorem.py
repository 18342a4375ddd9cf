"""The theorem's terms: worked out by hand, and with damage that is known in advance."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from eval_runs import EXACT, damaged, episode, many, runs
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import LoopTrace, Result, Ruling
from compass_edge.eval.theorem import Terms, measure_terms
from compass_edge.loop.settings import Settings

SURE = 0.999  # of the intervals in which a set rate must be found again


def told(
    one: Episode,
    position: object,
    local: object,
    rulings: tuple[Ruling, ...] = (),
    *,
    matches: bool = True,
    size: int = 0,
) -> Result:
    """A run as its trace says."""
    k, loc = np.asarray(position, np.int64), np.asarray(local, np.float64)
    trace = LoopTrace(k, loc, (), matches, rulings, "done", len(rulings), {}, {})
    values = np.where(k > 0, 100 * (k - 1 + loc) / (size or one.size), 0.0)
    return Result(one.id, "loop", values, trace)


def agrees(rate: Rate, set_to: float) -> bool:
    low, high = rate.interval(SURE)
    return low <= set_to <= high


def total(terms: list[Terms]) -> Terms:
    assert all(one.holds for one in terms), [str(breach) for one in terms for breach in one.breaches]
    assert terms[-1].task == ""
    return terms[-1]


def test_terms_by_hand() -> None:
    """Two steps of four frames, ten frames: a is 1 1 1 1 2 2 2 2 3 3. The loop is two frames late with the second step."""
    one = episode([4, 8], 10)
    position = [1, 1, 1, 1, 1, 1, 2, 2, 3, 3]
    local = [0, 0.25, 0.75, 0.75, 0.99, 0.99, 0.5, 0.5, 0, 0]
    rulings = (
        Ruling(1, 3, False, False),
        Ruling(1, 5, False, True),
        Ruling(1, 6, True, True),
        Ruling(2, 7, True, False),
    )
    terms, together = measure_terms([told(one, position, local, rulings)], [one])
    assert terms.eta == pytest.approx((2 + 2) / 10), "one position off is charged two, in two frames"
    assert terms.lam == pytest.approx((0.25 + 0.25) / 8), "frames 2 and 7, of the eight at the right position"
    error = [0, 0, 0.25, 0, 0.01, 0.26, 0, 0.25, 0, 0]
    assert terms.error == pytest.approx(100 * sum(error) / 2 / 10)
    assert terms.bound == pytest.approx(100 * (0.4 + 0.0625) / 2)
    assert terms.alphas == (Rate(1, 1), Rate(1, 1))
    assert terms.betas == (Rate(0, 1), Rate(1, 1))
    assert (terms.alpha, terms.beta) == (1, 1)
    assert terms.gamma == Rate(1, 2)
    assert terms.holds
    assert (together.error, together.bound) == (terms.error, terms.bound)


def test_a_plan_that_does_not_match_is_charged_k_and_nothing_else() -> None:
    one = episode([4, 8], 10)
    early = (Ruling(1, 1, True, False),)
    (terms, _) = measure_terms([told(one, [1] * 10, [0.5] * 10, early, matches=False, size=3)], [one])
    assert (terms.eta, terms.lam, terms.bound) == (2, 0, 100)
    assert terms.matching == 0
    assert math.isnan(terms.alpha)
    assert terms.gamma == Rate(0, 0)


def test_frames_before_there_is_a_plan_are_charged_by_their_distance() -> None:
    one = episode([4, 8], 10)
    (terms, _) = measure_terms([told(one, [0] * 5 + [2] * 3 + [3] * 2, [0] * 5 + [0.25, 0.5, 0.75, 0, 0])], [one])
    assert terms.eta == pytest.approx((2 * 4 + 3) / 10)
    assert terms.lam == 0
    assert terms.holds


def test_what_was_complete_before_it_began_is_false_but_not_early() -> None:
    one = episode([4, 8], 10)
    rulings = (Ruling(1, 9, True, False), Ruling(1, 4, False, True))  # and in frame 4 it is complete
    (terms, _) = measure_terms([told(one, [1] * 10, [0.0] * 10, rulings)], [one])
    assert terms.alphas[0] == Rate(0, 1)
    assert terms.betas[0] == Rate(0, 0)
    assert terms.alphas[1] == Rate(0, 0), "N never held the second step"


@given(st.data())
def test_the_bound_holds_for_every_curve_that_follows_from_its_trace(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 4))
    ends = sorted(data.draw(st.sets(st.integers(1, 30), min_size=size, max_size=size)))
    one = episode(ends, data.draw(st.integers(2, 40)))
    positions = data.draw(st.lists(st.integers(0, size + 1), min_size=one.frames, max_size=one.frames))
    local = data.draw(st.lists(st.floats(0, 1), min_size=one.frames, max_size=one.frames))
    local = [0.0 if k == size + 1 else value for k, value in zip(positions, local, strict=True)]
    assert all(terms.holds for terms in measure_terms([told(one, positions, local)], [one]))


def test_a_value_that_does_not_follow_from_its_trace_is_named() -> None:
    one = episode([4, 8], 10)
    exact = told(one, one.active(), one.local())
    assert measure_terms([exact], [one])[0].holds
    values = exact.values.copy()
    values[6] += 3
    (terms, together) = measure_terms([replace(exact, values=values)], [one])
    assert not terms.holds
    assert not together.holds
    (breach,) = terms.breaches
    assert (breach.episode, breach.frame) == (one.id, 6)
    assert "frame 6: the error must be at most 0.000" in str(breach)


def test_a_breach_is_one_even_if_the_mean_allows_it() -> None:
    """The loop never moves: its bound is far above its error, but for the frame that is wrong."""
    one = episode([4, 8], 40)
    lost = told(one, [1] * 40, np.where(one.active() == 1, one.local(), 0.0))
    values = lost.values.copy()
    values[2] += 9
    (terms, together) = measure_terms([replace(lost, values=values)], [one])
    assert terms.error < terms.bound - 5
    assert [breach.frame for breach in terms.breaches] == [2]
    assert not terms.holds
    assert not together.holds


def test_tasks_and_sizes_are_measured_apart_and_together() -> None:
    a, b, c = episode([4, 8], id="a", task="A"), episode([4], id="b", task="A"), episode([4, 8], 17, id="c", task="C")
    nothing = episode([], 5, id="d", task="D")
    results = [told(one, [1] * one.frames, [0.0] * one.frames) for one in (c, b, a)]
    results.append(Result("d", "loop", np.zeros(5), results[0].trace))
    terms = measure_terms(results, [a, b, c, nothing])
    assert [(one.task, one.size, one.frames) for one in terms] == [("A", 1, 5), ("A", 2, 9), ("C", 2, 17), ("", 0, 31)]
    for name in ("error", "eta", "lam", "bound"):
        mean = sum(getattr(one, name) * one.frames for one in terms[:-1]) / 31
        assert getattr(terms[-1], name) == pytest.approx(mean)
    with pytest.raises(UsageError, match="on runs of the loop, with their episodes"):
        measure_terms(results, [a])
    with pytest.raises(UsageError, match="on runs of the loop"):
        measure_terms([replace(results[0], trace=None)], [a, b, c])


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.9, 0.95, 0.999]))
def test_intervals_of_rates_are_scipys(hits: int, of: int, level: float) -> None:
    low, high = stats.binomtest(min(hits, of), of).proportion_ci(level, method="wilson")
    rate = Rate(min(hits, of), of)
    assert rate.interval(level) == pytest.approx((low, high), abs=1e-9)
    assert rate.interval(level)[0] <= rate.value <= rate.interval(level)[1]


# Damage that is set, and found again. Each run has hundreds of steps; an interval holds the truth 999 times in 1000.


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_early_proposals_are_found_as_set(alpha: float) -> None:
    episodes = many(50, rest=60)
    terms = total(measure_terms(runs(episodes, damaged(episodes, prm={"early": alpha}), Settings()), episodes))
    assert terms.early.of == 200
    assert agrees(terms.early, alpha)
    assert terms.alpha == max(rate.value for rate in terms.alphas)
    assert terms.false_accepts == Rate(0, terms.early.hits), "this Verifier makes no mistake"
    assert terms.gamma == Rate(0, 200)


@pytest.mark.parametrize("beta", [0.2, 1.0])
def test_false_accepts_are_found_as_set(beta: float) -> None:
    episodes = many(50, rest=60)
    models = damaged(episodes, prm={"early": 1.0}, verifier={"beta": beta})
    terms = total(measure_terms(runs(episodes, models, Settings()), episodes))
    assert terms.false_accepts.of > 150
    assert agrees(terms.false_accepts, beta)
    assert terms.gamma.hits == 0


def test_a_verifier_knows_which_of_several_presses_it_is_asked_about() -> None:
    """After a false accept N waits for the second press, and the first one comes. The memory tells V that it is not the one."""
    episodes = [
        replace(one, steps=tuple(replace(step, sentence="Press the button.") for step in one.truth))
        for one in many(30, rest=60)
    ]
    models = damaged(episodes, prm={"early": 1.0}, verifier={"beta": 0.3})
    terms = total(measure_terms(runs(episodes, models, Settings()), episodes))
    assert terms.false_accepts.of > 120
    assert agrees(terms.false_accepts, 0.3)


def test_a_step_is_passed_early_with_the_product_of_both() -> None:
    episodes = many(50, rest=60)
    models = damaged(episodes, prm={"early": 0.6}, verifier={"beta": 0.4})
    results = runs(episodes, models, Settings())
    passed = sum(
        ruling.accepted and ruling.frame < one.truth[ruling.step - 1].end
        for one, result in zip(episodes, results, strict=True)
        for ruling in (result.trace.rulings if result.trace else ())
    )
    assert agrees(Rate(passed, 200), 0.24)


@pytest.mark.parametrize("gamma", [0.2, 0.6])
def test_false_rejects_are_found_as_set(gamma: float) -> None:
    episodes = many(50, rest=200)
    terms = total(measure_terms(runs(episodes, damaged(episodes, verifier={"gamma": gamma}), Settings()), episodes))
    assert terms.gamma.of > 200
    assert agrees(terms.gamma, gamma)
    assert terms.early.hits == 0


def test_wrong_plans_are_found_as_set() -> None:
    episodes = many(80, steps=3, length=(40, 60), rest=10)
    terms = total(measure_terms(runs(episodes, damaged(episodes, orienter={"plan_error": 0.3})), episodes))
    wrong = Rate(terms.episodes - terms.matching, terms.episodes)
    assert agrees(wrong, 0.3)
    exact = total(measure_terms(runs(episodes, damaged(episodes)), episodes))
    assert terms.eta == pytest.approx(3 * wrong.value + (1 - wrong.value) * exact.eta, rel=0.05)


@pytest.mark.parametrize("bias", [-0.25, 0.1])
def test_a_biased_model_is_found_in_lambda_and_nowhere_else(bias: float) -> None:
    episodes = many(4, length=(40, 60))
    models = damaged(episodes, prm={"bias": bias, "ceiling": 0.99})
    terms = total(measure_terms(runs(episodes, models, EXACT), episodes))
    assert terms.eta == 0
    truth = np.concatenate([one.local() for one in episodes])
    within = np.concatenate([one.active() for one in episodes]) <= 4
    # At the start of a step nobody has been asked, and p_loc is 0; as it is after the last one.
    expected = np.where(within & (truth > 0), np.abs(np.clip(truth + bias, 0, 0.99) - truth), 0.0)
    assert terms.lam == pytest.approx(expected.mean(), abs=1e-9)
    assert terms.lam > 0.5 * abs(bias)


def test_a_verifier_that_rejects_delays_the_position_as_predicted() -> None:
    """With a tick every frame each rejection costs the quiet after it, 4 frames and then 6, 9, 14, at a charge of two a frame."""
    episodes = many(6, length=(60, 80), rest=100)
    results = runs(episodes, damaged(episodes, verifier={"gamma": 0.4}), EXACT)
    quiet, late = [4, 6, 9, 14, 21, 31, 46], 0
    for one, result in zip(episodes, results, strict=True):
        assert result.trace is not None
        for step in range(1, one.size + 1):
            rejected = sum(not ruling.accepted for ruling in result.trace.rulings if ruling.step == step)
            late += sum(quiet[:rejected])
    terms = total(measure_terms(results, episodes))
    assert late > 50
    assert terms.eta * terms.frames == pytest.approx(2 * late)
