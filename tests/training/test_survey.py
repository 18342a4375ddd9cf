"""Everything that a frame shows, in words and in the labels of its patches: held against the simulator's state."""

from __future__ import annotations

import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

import json
from collections import Counter
from dataclasses import replace

import numpy as np
from performed import played

from compass_edge.sim.acts import Carry
from compass_edge.sim.deed import bare
from training.dense import CLASSES, labels
from training.films import Films
from training.footage import CELL, EVERY, NOTHING, SIDE, Footage
from training.model import GRID
from training.stage import Stage, thing_word
from training.survey import survey

TASKS = ("S1", "S4", "S6", "S8", "Q1", "Q2", "Q4", "Q6", "R2", "R4")


@pytest.fixture(scope="module")
def films() -> Films:
    return Films([played(task) for task in TASKS])


def test_what_is_said_of_places_is_where_things_stand(films: Films) -> None:
    dice, told = np.random.default_rng(0), Counter[str]()
    for _ in range(300):
        sample = survey(films, dice, text=False)
        ((number, at),) = sample.frames
        film, stage = films.films[number], films.stages[number]
        shot = film.shots[film.frames[at]]
        for entry in json.loads(sample.reply)["start"].split("; "):
            name, _, said = entry.partition(": ")
            told[said.split()[0]] += 1
            if sample.case == "Where" and name != "hand":
                (place,) = [one for one in stage.places.values() if bare(one.name) == name]
                standing = [thing for thing in stage.movable if stage.place_of(thing, shot) == place]
                assert (said == "empty") == (not standing)
                assert not standing or any(said.startswith(thing_word(thing)) for thing in standing)
    assert {"empty", "up", "down", "free", "touched", "open", "closed", "gripped"} <= told.keys()


def test_the_same_frame_is_asked_about_in_many_orders(films: Films) -> None:
    dice = np.random.default_rng(1)
    first = Counter(json.loads(survey(films, dice, text=True).reply)["start"].split(":")[0] for _ in range(200))
    assert len(first) > 15
    assert survey(films, dice, text=True).frames == []


def seen_by(number: int) -> np.ndarray:
    """A map in which one thing fills the picture."""
    return np.full((SIDE // CELL, SIDE // CELL), number, np.uint8)


def told_of(film: Footage, at: int, number: int) -> set[str]:
    made = labels(film, at, seen_by(number))
    assert made.shape == (GRID * GRID, len(CLASSES))
    assert (made == made[0]).all()
    return {CLASSES[kind] for kind in np.nonzero(made[0])[0]}


def test_a_mat_knows_what_stands_on_it_and_a_thing_where_it_stands() -> None:
    film = played("Q6")
    stage = Stage(film.script)
    shot = film.shots[film.frames[0]]
    for number, thing in enumerate(film.script.things):
        told = told_of(film, 0, number)
        if thing.kind == "mat":
            (name,) = [place.name for place in stage.places.values() if place.at == thing.at and place.base < 0.01]
            on = next(one for one in stage.movable if stage.place_of(one, shot) == stage.places[name])
            assert {thing_word(thing), f"under {thing_word(on)}", f"at {bare(name).split()[0]}"} <= told
        elif thing.kind == "block":
            place = stage.place_of(thing, shot)
            assert place is not None
            assert f"at {bare(place.name).split()[0]}" in told
            assert any(word.startswith("on ") and word.endswith(" mat") for word in told)


def test_a_mat_whose_block_is_carried_is_under_nothing() -> None:
    film = played("S1")
    number = next(at for at, thing in enumerate(film.script.things) if thing_word(thing) == "white mat")
    assert "under nothing" in told_of(film, 0, number)
    carried = next(at for at, frame in enumerate(film.frames) if film.shots[frame].held)
    held = next(
        at for at, thing in enumerate(film.script.things) if thing.name == film.shots[film.frames[carried + 8]].held
    )
    assert "held" in told_of(film, carried + 8, held)


def test_a_rack_knows_what_stands_in_each_slot() -> None:
    film = played("Q3")
    number, tube = (
        next(at for at, thing in enumerate(film.script.things) if thing.kind == kind) for kind in ("rack", "tube")
    )
    colour = film.script.things[tube].colour
    for step, side in ((0, "middle"), (1, "right"), (2, "middle")):
        at = film.frames.index(-(-film.ends[step] // EVERY) * EVERY)
        slots = {word for word in told_of(film, at, number) if " slot " in word}
        others = {f"{other} slot empty" for other in ("left", "middle", "right") if other != side}
        assert slots == {f"{side} slot {colour}", *others}
        assert f"at {side}" in told_of(film, at, tube)


def test_a_block_knows_what_stands_on_it_and_who_grips_it() -> None:
    film = played("Q6")
    stage, end = Stage(film.script), film.ends[0]
    act = film.script.steps[0].act
    assert isinstance(act, Carry)
    above = stage.number(act.thing)
    below = next(one for one in stage.movable if thing_word(one) == bare(act.place.name))
    at = film.frames.index(-(-end // EVERY) * EVERY)
    assert f"under {thing_word(act.thing)}" in told_of(film, at, stage.number(below))
    assert f"on {thing_word(below)}" in told_of(film, at, above)
    gripped = [at for at, frame in enumerate(film.frames) if frame < end and "gripped" in told_of(film, at, above)]
    assert gripped
    assert all(stage.gripped(act.thing, film.shots[film.frames[one]]) for one in gripped)


def test_nothing_is_labelled_where_nothing_is() -> None:
    film = played("S1")
    assert not labels(film, 0, seen_by(NOTHING)).any()
    other = replace(film, script=replace(film.script, seed=film.script.seed + 1))
    assert told_of(other, 0, 0) == told_of(film, 0, 0)
