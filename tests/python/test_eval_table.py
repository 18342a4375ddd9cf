"""The table and its intervals: by hand, against plain resampling and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from eval_film import episode
from scipy import stats

from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.bootstrap import LEAST, RESAMPLES, SEED, Bootstrap
from compass_edge.eval.confusion import Confusion, confusion
from compass_edge.eval.result import LoopTrace, Result, Ruling
from compass_edge.eval.table import COLUMNS, Table, needed


def off(one: Episode, by: float, method: str = "m") -> Result:
    """A curve that is wrong by so much everywhere."""
    return Result(one.id, method, one.progress() + by)


def episodes_of(count: int, tasks: int) -> list[Episode]:
    return [episode([10, 20], 30, id=f"{n % tasks}/{n}", task=str(n % tasks), form="state") for n in range(count)]


def test_an_episode_counts_under_each_form_it_needs_and_once_overall() -> None:
    mix = episode([10, 20], id="mix", form="state", forms=[("state",), ("state", "recurrence")])
    plain = episode([10, 20], id="plain", form="sequence")
    none = episode([10, 20], id="none")
    assert needed(mix) == ("state", "recurrence")
    assert needed(plain) == ("sequence",)
    assert needed(none) == ()
    table = Table([off(mix, 3), off(plain, -5), off(none, 10)], [mix, plain, none])
    cells = {column: table.cell("m", column) for column in COLUMNS}
    assert {column: (cell.episodes, cell.mixes) for column, cell in cells.items()} == {
        "state": (1, 1),
        "sequence": (1, 0),
        "recurrence": (1, 1),
        "overall": (3, 1),
    }
    assert [cells[column].mae.value for column in COLUMNS] == pytest.approx([3, 5, 3, 6])
    assert all(cell.stalled is None for cell in cells.values())


def test_what_belongs_to_steps_is_a_mean_over_steps() -> None:
    few, many = episode([10], 12, id="few", task="A"), episode([10, 20, 30, 40], id="many", task="B")
    table = Table([off(few, 10), off(many, -20)], [few, many])
    cell = table.cell("m")
    assert cell.mae.value == pytest.approx(15), "of two episodes"
    assert cell.end_error.value == pytest.approx((10 + 4 * 20) / 5), "of five steps"
    assert cell.boundary_error.value == pytest.approx((100 * 1 / 12 + 100 * (8 + 8 + 8 + 40) / 41) / 5)


def test_stalled_episodes_are_counted_for_loops() -> None:
    one = episode([10, 20])
    for outcome, stalled in (("done", 0), ("stalled", 1), ("incomplete", 1)):
        trace = LoopTrace(np.ones(21, np.int64), np.zeros(21), (), True, (), outcome, 0, {}, {})
        assert Table([Result(one.id, "loop", one.progress(), trace)], [one]).cell("loop").stalled == stalled


def test_a_difference_is_paired() -> None:
    """Episodes differ wildly, the methods by two points everywhere: a pair shows that at once."""
    dice = np.random.default_rng(3)
    told = episodes_of(40, 40)
    hard = dice.uniform(5, 60, 40)
    results = [off(one, by, "a") for one, by in zip(told, hard, strict=True)]
    results += [
        off(one, by + 2 + wobble, "b") for one, by, wobble in zip(told, hard, dice.normal(0, 0.1, 40), strict=True)
    ]
    table = Table(results, told)
    found = table.difference("b", "a")
    assert found.excludes_zero
    assert found.value == pytest.approx(2, abs=0.1)
    assert found.high - found.low < 0.2
    alone = table.cell("a").mae
    assert alone.high - alone.low > 5
    back = table.difference("a", "b")
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))
    assert not table.difference("a", "a").excludes_zero


def test_a_difference_is_over_the_episodes_that_both_have() -> None:
    a, b = episode([10, 20], id="a"), episode([10, 20], id="b")
    table = Table([off(a, 10, "x"), off(b, 90, "x"), off(a, 4, "y")], [a, b])
    assert table.difference("x", "y").value == pytest.approx(6)


def test_intervals_do_not_depend_on_the_order_of_results() -> None:
    for tasks in (3, 12):  # too few to resample, and enough
        told = episodes_of(24, tasks)
        results = [off(one, number) for number, one in enumerate(told)]
        forth, back = Table(results, told).cell("m"), Table(results[::-1], told[::-1]).cell("m")
        assert forth == back


def test_the_bootstrap_is_plain_resampling_of_clusters() -> None:
    """The same draws, one resample at a time, with lists."""
    tasks = [str(n % 9) for n in range(30)]
    dice = np.random.default_rng(5)
    values = [dice.uniform(0, 10, int(dice.integers(0, 4))) for _ in tasks]
    drawn = np.random.default_rng(SEED).multinomial(9, np.full(9, 1 / 9), RESAMPLES)
    means = []
    for counts in drawn[:2000]:
        pool = [value for task, own in zip(tasks, values, strict=True) for value in list(own) * int(counts[int(task)])]
        means.append(sum(pool) / len(pool))
    bootstrap = Bootstrap(tasks, resamples=2000)
    assert bootstrap.by == "task"
    found = bootstrap.mean(values)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))
    assert found.value == pytest.approx(np.concatenate(values).mean())


def test_the_bootstrap_is_scipys() -> None:
    values = np.random.default_rng(1).gamma(2, 5, 60)
    found = Bootstrap([str(n) for n in range(60)]).mean([np.array([value]) for value in values])
    other = stats.bootstrap((values,), np.mean, n_resamples=9999, method="percentile", rng=np.random.default_rng(2))
    assert found.low == pytest.approx(other.confidence_interval.low, rel=0.02)
    assert found.high == pytest.approx(other.confidence_interval.high, rel=0.02)


def test_episodes_that_fail_alike_are_no_more_evidence_than_their_task() -> None:
    """Ten tasks of ten episodes, alike within a task: clustered, the interval is that of ten values and not of a hundred."""
    level = np.random.default_rng(2).uniform(0, 50, 10)
    tasks = [str(n // 10) for n in range(100)]
    together = Bootstrap(tasks).mean([np.array([level[n // 10]]) for n in range(100)])
    apart = Bootstrap([str(n) for n in range(100)]).mean([np.array([level[n // 10]]) for n in range(100)])
    assert together.high - together.low > 2 * (apart.high - apart.low)


@pytest.mark.parametrize(("tasks", "by"), [(LEAST - 1, "episode"), (LEAST, "task")])
def test_too_few_tasks_are_not_resampled(tasks: int, by: str) -> None:
    assert Bootstrap([str(n % tasks) for n in range(40)]).by == by


def test_nothing_to_average() -> None:
    empty = Bootstrap(["a", "b"]).mean([np.zeros(0), np.zeros(0)])
    assert math.isnan(empty.value)
    assert math.isnan(empty.low)
    assert not empty.excludes_zero
    assert math.isnan(Bootstrap([]).mean([]).value)
    lone = Bootstrap(["a"]).mean([np.array([3.0])])
    assert (lone.value, lone.low, lone.high) == (3, 3, 3)


def test_what_is_not_there_is_said() -> None:
    one = episode([10, 20])
    table = Table([off(one, 1)], [one])
    with pytest.raises(UsageError, match=r"no method 'x'\. There are: m"):
        table.cell("x")
    with pytest.raises(UsageError, match="no column 'memory'"):
        table.cell("m", "memory")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no such episode came"):
        Table([off(one, 1)], [])
    with pytest.raises(UsageError, match="each of 2 episodes, and 1 came"):
        Bootstrap(["a", "b"]).mean([np.zeros(1)])
    with pytest.raises(UsageError, match="'m' of 'T/0' came twice"):
        Table([off(one, 1), off(one, 2)], [one])
    assert table.cell("m", "state").episodes == 0


def test_confusion_by_hand() -> None:
    def run(matches: bool, *rulings: tuple[bool, bool]) -> Result:
        told = tuple(Ruling(1, 5, accepted, true) for accepted, true in rulings)
        trace = LoopTrace(np.ones(9, np.int64), np.zeros(9), (), matches, told, "done", len(told), {}, {})
        return Result("e", "m", np.zeros(9), trace)

    sure = run(
        True, (True, True), (True, True), (True, True), (True, False), (False, True), (False, False), (False, False)
    )
    found = confusion([sure, run(False, (True, True), (False, False)), Result("e", "prm", np.zeros(9))])
    assert found == Confusion(true_accepts=3, false_accepts=1, true_rejects=2, false_rejects=1, left_out=2)
    assert found.false_accept_rate.value == pytest.approx(1 / 3)
    assert found.false_reject_rate.value == pytest.approx(1 / 4)
