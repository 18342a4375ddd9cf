"""A tower's course: which frames it is shown, labels that came later, and features that stay what decoders have learned to read."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

import numpy as np
import torch
from performed import played

from compass_edge.sim.gl import choose_gl
from training.checkpoint import states_of
from training.dense import CLASSES, DenseHeads, decisive
from training.footage import film
from training.model import Size
from training.moments import beside_changes, moments_of
from training.paint import shuffled
from training.tower import Course

CHECKPOINT = Path(__file__).parents[2] / "training" / "compass-tiny"


def test_moments_are_beside_changes_and_all_of_them() -> None:
    filmed = played("R3")
    found = moments_of(filmed)
    assert 0 < len(found) < len(filmed.frames) // 2
    held = [filmed.shots[frame].held for frame in filmed.frames]
    changes = [at for at in range(1, len(held)) if held[at] != held[at - 1]]
    assert changes, "the block is picked up"
    assert {*changes, *(at - 1 for at in changes)} <= set(found)
    assert moments_of(filmed.painted(shuffled(np.random.default_rng(0)))) == found


def test_heads_of_fewer_labels_are_taken_and_the_rest_begins_with_nothing() -> None:
    heads, fewer = DenseHeads(Size().tower, Size().hidden), len(CLASSES) - 5
    states = {
        name: value[:fewer] if len(value) == len(CLASSES) else value for name, value in heads.state_dict().items()
    }
    other = DenseHeads(Size().tower, Size().hidden)
    other.take(states)
    assert torch.equal(other.features.weight[:fewer], heads.features.weight[:fewer])
    assert not other.features.weight[fewer:].any()
    assert torch.equal(other.place.weight, heads.place.weight)


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    choose_gl()
    folder = tmp_path_factory.mktemp("films")
    assert film("Q3", 10_000, folder)
    return folder


def course(films: Path, **options: Any) -> Course:
    plain = {"rank": 0, "crew": 1, "start": CHECKPOINT, "stills": None, "half": False, "steps": 20, "rate": 1e-3}
    return Course(Namespace(footage=films, out=None, **plain | options))


def test_an_anchor_keeps_features_near_what_they_were(films: Path) -> None:
    """The same steps from the same tower, with and without."""
    apart = {}
    for anchor in (1e-9, 10.0):
        one = course(films, anchor=anchor)
        apart[anchor] = [one.take_step(step) for step in range(20)][-1][1]
    assert 0 < apart[10.0] < 0.5 * apart[1e-9]


def test_without_an_anchor_only_labels_count(films: Path) -> None:
    one = course(films, anchor=0.0)
    before = {name: value.clone() for name, value in states_of(CHECKPOINT)["visual"].items()}
    loss, away = one.take_step(0)
    assert loss > 0
    assert away == 0
    assert any(not torch.equal(value, before[name]) for name, value in one.model.model.visual.state_dict().items())


def test_a_hand_that_is_taken_for_closed_counts_where_there_is_a_hand() -> None:
    """And nowhere else: elsewhere nothing is said about it."""
    known = torch.zeros(1, 4, len(CLASSES))
    hand, closed = CLASSES.index("hand"), CLASSES.index("closed")
    known[0, 0, hand] = 1
    wrong, elsewhere = torch.full_like(known, -9.0), torch.full_like(known, -9.0)
    wrong[0, 0, closed] = elsewhere[0, 1, closed] = 9.0
    assert decisive(wrong, known) > 8
    assert decisive(elsewhere, known) < 0.01


def test_stills_are_half_of_moments_at_which_something_changes() -> None:
    filmed = played("R3")
    beside = beside_changes(filmed.shots)
    shots = [filmed.shots[at] for at in beside]
    assert {shot.held for shot in shots} > {None}
    assert len(beside) < len(filmed.shots) // 4
