"""The blind predictor, and the local error of a progress model, which is read back from its curves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from eval_film import episode

from compass_edge.data.episode import StepTruth
from compass_edge.eval.blind import BlindTable, blind_diagnosis, blind_table, kind_of
from compass_edge.eval.blind_fit import curves_of, medians_of
from compass_edge.eval.diagnosis import diagnose, scored, stretches
from compass_edge.eval.knowledge import chance
from compass_edge.eval.local_error import local_scores
from compass_edge.loop.settings import Settings
from compass_edge.models import Clip

SETTINGS = Settings(every=4)


def test_kinds() -> None:
    for sentence, kind in (
        ("Press the red button once and release it.", "press"),
        ("Move the red block from here onto there.", "carry"),
        ("Lift it and put it back.", "lift"),
        ("Tap the mat.", "tap"),
        ("Wait until the lamp is dark.", "watch"),
        ("Pour the water.", "carry"),
    ):
        assert kind_of(StepTruth(sentence, 1)) == kind
    assert kind_of(StepTruth("Ring the bell.", 1, completion="brief")) == "press"


def test_the_table_of_the_package_rises_and_ends_at_one() -> None:
    table = blind_table()
    assert set(table.medians) == {"press", "lift", "carry", "tap", "watch", "whole"}
    for kind, medians in table.medians.items():
        assert medians[0] == 0.0
        assert 0.9 < max(medians) <= 1.0
        assert table.at(kind, 1e6) == medians[-1]


def test_medians_are_of_those_that_are_not_over() -> None:
    steps = [StepTruth("Press a.", 2), StepTruth("Press b.", 6)]  # 2 and 4 frames
    curves = curves_of(steps)
    assert curves[:2] == [("press", [0.0, 0.5, 1.0]), ("press", [0.0, 0.25, 0.5, 0.75, 1.0])]
    assert curves[2] == ("whole", [0.0, 0.25, 0.5, 0.625, 0.75, 0.875, 1.0])
    assert medians_of(curves[:2]) == {"press": [0.0, 0.375, 0.75, 0.75, 1.0]}


def test_its_curves_are_a_models() -> None:
    """Steps of a second, as the table has them: with the true context it is right."""
    known = BlindTable(10.0, {"carry": [0.1 * at for at in range(11)], "whole": [0.0, 0.5]})
    one = episode([10, 20], 30, fps=10.0)
    found = blind_diagnosis(one, SETTINGS, known)
    assert found.oracle.values == pytest.approx(one.progress())
    assert found.chained.values == pytest.approx(one.progress())
    assert found.without.values[4:] == pytest.approx(50.0)
    assert found.without.method == "blind, without context"


class Hashing:
    """Any score from 0 to 1, the same for the same clip."""

    name, max_batch = "hashing", 4

    def score(self, clips: Sequence[Clip]) -> list[float]:
        return [chance(clip.digest(self.name)) for clip in clips]


def test_scores_are_read_back_from_the_curves() -> None:
    one = episode([13, 30, 47, 60], 66)
    found = diagnose(Hashing(), one, SETTINGS)
    asked = stretches(one)[1:]
    steps = local_scores(found.oracle, found.chained, one, SETTINGS.every)
    assert [step.step for step in steps] == [0, 1, 2, 3]
    for step, stretch, scores in zip(steps, asked, scored(Hashing(), one, asked, SETTINGS), strict=True):
        assert (step.frames + stretch.first).tolist() == sorted(scores)
        assert step.scores == pytest.approx([scores[frame] for frame in sorted(scores)])
        assert (step.truth[0], step.truth[-1]) == (0.0, 1.0)


def test_a_step_that_the_film_does_not_complete_is_left_out() -> None:
    one = episode([13, 30, 80], 66)
    found = diagnose(Hashing(), one, SETTINGS)
    assert [step.step for step in local_scores(found.oracle, found.chained, one, 4)] == [0, 1]
