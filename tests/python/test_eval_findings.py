"""The suite's findings: what each number is made of; the executors' agreement; speed; a live run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from eval_film import MemoryFilm, episode

from compass_edge.data.dataset import open_dataset
from compass_edge.eval.agreement import AGREEMENT, Agreement, agreed, alike
from compass_edge.eval.blind import BLIND, blind_diagnosis
from compass_edge.eval.bootstrap import Bootstrap
from compass_edge.eval.diagnosis import diagnose
from compass_edge.eval.findings import find
from compass_edge.eval.live import run_live
from compass_edge.eval.loop_run import run_loop
from compass_edge.eval.oracle import oracles
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import Result
from compass_edge.eval.speed import measure_speed, spread
from compass_edge.eval.verifier_exam import VerifierExam
from compass_edge.loop.events import CompletionProposed, FrameScored
from compass_edge.loop.mark import Mark
from compass_edge.loop.settings import Settings

SETTINGS = Settings(every=2)


def test_a_gap_is_closed_by_so_much() -> None:
    drawn = Bootstrap([f"T{at}" for at in range(9)])
    without, oracle, loop = ([np.array([value + at]) for at in range(9)] for value in (30.0, 10.0, 15.0))
    closed = drawn.closed(without, oracle, loop)
    assert (closed.value, closed.low, closed.high) == pytest.approx((0.75, 0.75, 0.75))
    nothing = drawn.closed(oracle, oracle, loop)
    assert math.isnan(nothing.value)


def test_findings_of_oracles() -> None:
    episodes = list(open_dataset("bundled").episodes())
    models = oracles(episodes)
    exam = VerifierExam(lambda: models, SETTINGS, "annotation")
    results: list[Result] = []
    for one in episodes:
        results += [
            *diagnose(models.prm, one, SETTINGS).results,
            *blind_diagnosis(one, SETTINGS).results,
            *exam.run(one),
        ]
        results.append(run_loop(one, models, SETTINGS))
    found = find(results, episodes, prm=models.prm.name, settings=SETTINGS, wording="annotation")
    numbers = found.numbers
    assert numbers["mae_loop"].value < 1
    assert numbers["prm_local_mae"].value < 0.01 < numbers["prm_blind_mae"].value < 0.2
    assert numbers["prm_local_mae"].n == numbers["prm_blind_mae"].n > 200
    assert (numbers["stalled"].value, numbers["stalled"].n) == (0, 3)
    assert numbers["verifier_accuracy"].n == 12
    assert math.isnan(numbers["early_stop"].value)  # there is no negative here
    assert found.executors_agree is None
    assert BLIND not in models.prm.name


def test_executors_are_compared_by_their_events() -> None:
    one = episode([40, 80], 100)
    (result,) = Agreement(lambda: oracles([one]), SETTINGS).run(one)
    other = replace(result, values=np.array([0.0]))
    assert result.method == AGREEMENT
    assert agreed([result, other]) == Rate(1, 2)


def test_the_speed_is_film_over_computing() -> None:
    many = [episode([40, 80], 100, id=f"T/{at}") for at in range(7)]
    assert [one.id for one in spread(many, 3)] == ["T/0", "T/2", "T/4"]
    assert spread(many, 9) == many
    told: list[tuple[int, int]] = []
    found = measure_speed(many[:2], oracles(many), SETTINGS, lambda done, total: told.append((done, total)))
    assert found.film_s == pytest.approx(200 / 30)
    assert found.factor == pytest.approx(found.film_s / found.computing_s)
    assert found.slowest <= found.median
    assert told == [(1, 3), (2, 3)]


def test_a_live_run_tells_how_old_its_progress_is() -> None:
    one = episode([60, 120], 160, fps=100.0, film=MemoryFilm("live", 160))
    found = run_live([one], oracles([one]), Settings(every=4))
    assert found.looks > 3
    assert 0 <= found.age_p50_s <= found.age_p95_s


def test_events_agree_to_the_rounding_of_scores_and_no_further() -> None:
    frame, other = Mark(2, 200), Mark(4, 400)
    events = [FrameScored(frame, 0.5), CompletionProposed(frame, other, 0.97, "high")]
    assert alike(events, [FrameScored(frame, 0.5 + 1e-7), CompletionProposed(frame, other, 0.97, "high")])
    assert not alike(events, [FrameScored(frame, 0.501), events[1]])
    assert not alike(events, [FrameScored(other, 0.5), events[1]])
    assert not alike(events, [events[0], CompletionProposed(frame, frame, 0.97, "high")])
    assert not alike(events, events[:1])
