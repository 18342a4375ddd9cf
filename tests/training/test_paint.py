"""A film in other paints: its pictures, its words and its truth change together."""

from __future__ import annotations

import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

import numpy as np
from performed import played

from compass_edge.sim.things import COLOURS
from training.judgement import judge, rest_of
from training.paint import picture_in, shuffled, told_in
from training.stage import Stage

_ROUND = {"red": "green", "green": "blue", "blue": "yellow", "yellow": "purple", "purple": "orange", "orange": "red"}


def test_light_stays_and_paint_changes() -> None:
    light = np.linspace(40, 240, 12).reshape(3, 4, 1)
    red, table = light * COLOURS["red"], np.full((3, 4, 3), 150.0)
    coat = np.zeros((3, 8), np.uint8)
    coat[:, :4] = 1
    picture = np.concatenate([red, table], 1).round().astype(np.uint8)
    found = picture_in(_ROUND, picture, coat)
    assert np.abs(found[:, :4] - light * COLOURS["green"]).max() < 2.0
    assert (found[:, 4:] == 150).all()


def test_words_change_and_names_do_not() -> None:
    assert told_in(_ROUND, "The red block covered the blue mat.") == "The green block covered the yellow mat."
    film = played("S4")
    there = {thing.name for thing in film.script.things}
    shown = film.painted(_ROUND)
    assert {thing.name for thing in shown.script.things} == there
    assert shown.script.instruction == told_in(_ROUND, film.script.instruction)
    lit = {(a.lamp, b.lamp) for a, b in zip(film.shots, shown.shots, strict=True) if a.lamp}
    assert lit
    assert all(_ROUND[before] == after for before, after in lit if before is not None)


@pytest.mark.parametrize("task", ["S1", "S4", "S8", "Q5", "R7"])
def test_what_is_true_of_a_film_is_true_of_it_in_other_paints(task: str) -> None:
    film = played(task)
    shown = film.painted(_ROUND)
    for step, end in enumerate(film.ends):
        begin = film.ends[step - 1] if step else 0
        said = []
        for one in (film, shown):
            stage = Stage(one.script)
            part = stage.part(step)
            shots = one.shots
            judged = judge(
                stage, part, shots[begin], shots[(begin + end) // 2], shots[end], rest_of(part, shots, begin)
            )
            said.append((part.deed.outcome, judged.candidate, judged.change, judged.verdict))
        assert tuple(told_in(_ROUND, text) for text in said[0]) == said[1]


def test_every_paint_is_kept() -> None:
    paints = shuffled(np.random.default_rng(0))
    assert sorted(paints) == sorted(paints.values())
