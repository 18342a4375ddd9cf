"""Negatives and the ablation of tau, on runs with oracles and on curves worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from eval_film import MemoryFilm, episode
from eval_runs import damaged, many

from compass_edge.errors import UsageError
from compass_edge.eval.ablation import TAUS, ablation, ablation_methods
from compass_edge.eval.loop_run import run_loop
from compass_edge.eval.method import LoopMethod
from compass_edge.eval.negatives import deviations
from compass_edge.eval.oracle import oracles
from compass_edge.eval.result import Result
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings
from compass_edge.models import Cancelled, OnText, Question

FILM = MemoryFilm("film", 301)
EARLY = episode([100, 200, 300], 151, id="early", film=FILM, kind="early_stop", instruction="all three")
EXTRA = episode([100, 200], 301, id="extra", film=FILM, kind="extra_steps", instruction="two of them")
OTHER = episode([], 301, id="other", film=FILM, kind="mismatch", instruction="something else")
NEGATIVES = [EARLY, EXTRA, OTHER]


def test_deviations_by_hand() -> None:
    """A model that sees a finished task in everything."""
    sure = [Result(one.id, "sure", np.full(one.frames, 100.0)) for one in NEGATIVES]
    positive = episode([10], id="positive")
    found = deviations([*sure, Result("positive", "sure", np.zeros(11))], [*NEGATIVES, positive])
    assert [(one.kind, one.episodes) for one in found] == [("early_stop", 1), ("extra_steps", 1), ("mismatch", 1)]
    early, extra, other = found
    assert early.deviation.value == pytest.approx(100 - EARLY.progress().mean())
    assert (early.terminal, early.right) == pytest.approx((100, 50))
    assert extra.deviation.value == pytest.approx(100 * (1 - (100 + 101) / 301), abs=0.5)
    assert (extra.terminal, extra.right) == (100, 100)
    assert (other.deviation.value, other.right, other.highest) == (100, 0, 100)


def test_the_loop_with_oracles_follows_every_negative() -> None:
    models = oracles(NEGATIVES)
    found = {one.kind: one for one in deviations([run_loop(one, models) for one in NEGATIVES], NEGATIVES)}
    assert all(one.deviation.value < 1 for one in found.values())
    assert found["extra_steps"].terminal == 100
    assert found["mismatch"].highest == 0
    assert found["early_stop"].terminal == pytest.approx(50, abs=1)


def test_a_curve_is_not_counted_twice() -> None:
    same = Result("early", "m", np.zeros(151))
    with pytest.raises(UsageError, match="one curve of an episode"):
        deviations([same, same], NEGATIVES)


@dataclass(frozen=True)
class NeedsTau:
    """A Verifier that cannot make out a completion unless it is told what to expect."""

    verifier: Any
    name: str = "needs tau"
    max_batch: int = 1

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> list[str]:
        replies = []
        for question, text in zip(questions, self.verifier.ask(questions, on_text, cancelled), strict=True):
            words = "".join(part for part in question.parts if isinstance(part, str))
            reply = json.loads(text)
            if "Expected transition" not in words:
                reply["verdict"] = "uncertain"
            replies.append(json.dumps(reply))
        return replies


def needs_tau() -> Models:
    exact = damaged(many(12, rest=60))
    return replace(exact, verifier=NeedsTau(exact.verifier))


def test_what_tau_is_worth_to_a_verifier_that_needs_it() -> None:
    episodes = [replace(one, form="state" if n % 2 else "recurrence") for n, one in enumerate(many(12, rest=60))]
    methods = ablation_methods(needs_tau)
    results = [result for method in methods for one in episodes for result in method.run(one)]
    full, at_v, nowhere = ablation([*results, Result(episodes[0].id, "another", np.zeros(3))], episodes)
    assert [one.tau for one in (full, at_v, nowhere)] == list(TAUS) == ["everywhere", "orienter", "nowhere"]
    for one, stalled in ((full, 0), (at_v, 12), (nowhere, 12)):
        assert one.cells["overall"].stalled == stalled
        assert one.planned == 4, "planning does not change"
    assert full.cells["overall"].end_error.value < 3
    assert at_v.cells["overall"].end_error.value > 30
    assert at_v.rise["overall"].excludes_zero
    assert at_v.rise["state"].value == pytest.approx(
        at_v.cells["state"].end_error.value - full.cells["state"].end_error.value
    )
    assert full.rise["overall"].value == 0
    assert at_v.cells["overall"].mae.value > full.cells["overall"].mae.value + 20


def test_the_loop_as_it_is_is_the_same_method_in_every_table() -> None:
    """Under the same hash, so that it is run once; and the ablation goes before what settings say of tau."""
    plain, full = LoopMethod(needs_tau), ablation_methods(needs_tau)[0]
    assert plain.identity() == full.identity()
    set_off = ablation_methods(needs_tau, Settings(tau="nowhere"))
    assert [method.identity()["settings"]["tau"] for method in set_off] == list(TAUS)
    assert len({json.dumps(method.identity()) for method in set_off}) == 3
