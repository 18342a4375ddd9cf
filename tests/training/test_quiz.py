"""A quiz: the suite's questions about tuning seeds, with the pictures that they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

for needed in ("torch", "mujoco", "av"):
    pytest.importorskip(needed)

from compass_edge.errors import UsageError
from compass_edge.sim.gl import choose_gl
from training.quiz import ask, draw, quizzes

PACKAGE = Path(__file__).parents[2] / "compass_edge" / "tiny"


def test_a_quiz_has_the_pictures_that_it_asks_about_and_is_answered(tmp_path: Path) -> None:
    choose_gl()
    draw("R1", 1004, tmp_path)
    ((quiz, images),) = quizzes(tmp_path, [1004])
    assert quiz.name == "R1/1004"
    assert list(images) == quiz.frames
    assert quiz.frames[0] == 0
    assert {frame for one in quiz.asked for frame in one.frames} <= set(images)
    assert len({one.right for one in quiz.asked}) == 2
    assert images[0].digest != images[quiz.frames[1]].digest
    found = ask(PACKAGE, tmp_path, [1004], 1, wrong=False)
    assert found["verdict"].of == len(quiz.asked) == found["task R1"].of
    assert found["plan"].hits == 1, "R1 is the easiest of plans"
    assert found["verdict"].hits >= len(quiz.asked) - 1


@pytest.mark.parametrize("seed", [0, 100])
def test_test_seeds_are_refused(tmp_path: Path, seed: int) -> None:
    with pytest.raises(UsageError, match="tuning"):
        draw("S1", seed, tmp_path)
    assert not list(tmp_path.iterdir())
