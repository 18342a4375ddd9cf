"""Where to look: the source of a copied name, the frame and the thing of a word that is read, and a loss that is small only there."""

from __future__ import annotations

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from pathlib import Path

import torch
from performed import played

from training.batch import Scribe, made
from training.drafts import drafts
from training.films import Films
from training.guidance import FILLED, GOAL, LAYERS, ORIGIN, SUBJECT, Guide, copied, loss_of_guide, read
from training.model import VISUAL, Size, Tiny, config
from training.orienter_samples import first_look
from training.recall import recall
from training.roles import _pictures
from training.tokenizer import ids_of
from training.verifier_samples import verify

FOLDER = Path(__file__).parents[2] / "training" / "compass-tiny"
MOVED = '{"start": "left red mat: blue block; white mat: empty; hand: open", "during": "left red mat: empty; white mat: empty; hand: blue block"'


@pytest.fixture(scope="module")
def scribe() -> Scribe:
    return Scribe(FOLDER)


@pytest.fixture(scope="module")
def model(scribe: Scribe) -> Tiny:
    torch.manual_seed(0)
    return Tiny(config(Size(), scribe.tokenizer.size, ids_of(scribe.tokenizer)))


def test_a_place_is_copied_from_the_list() -> None:
    dice = np.random.default_rng(0)
    found = [(sample.reply, one) for sample in (recall(dice) for _ in range(20)) for one in copied(sample.reply)]
    assert len(found) > 40
    for reply, (to, source) in found:
        assert reply[slice(*to)] == reply[slice(*source)]
        assert reply[source[0] - 4 : source[0]] == " at "
        assert reply.index('"grounded"') > source[1]


def test_what_is_not_in_the_list_is_not_copied() -> None:
    assert (
        copied(
            '{"objects": [{"name": "red block at white mat"}], "plan": ["Move the red block from the black mat onto it"'
        )
        == []
    )


def test_a_move_is_read_off_two_places_of_each_frame() -> None:
    told = [(MOVED[slice(*span)], frame, which) for span, frame, which in read(MOVED)]
    assert told == [("blue block", 0, ORIGIN), ("empty", 0, GOAL), ("empty", 1, ORIGIN), ("empty", 1, GOAL)]


def test_anything_else_is_read_off_the_thing_itself() -> None:
    reply = '{"start": "red button: up", "during": "red button: down", "candidate": "red button: up", "change": "none"}'
    assert [(reply[slice(*span)], frame, which) for span, frame, which in read(reply)] == [
        ("up", 0, SUBJECT), ("down", 1, SUBJECT), ("up", 2, SUBJECT),
    ]  # fmt: skip


def test_a_batch_guides_the_token_before(scribe: Scribe, model: Tiny) -> None:
    dice = np.random.default_rng(1)
    samples = [recall(dice), first_look(drafts(dice, 4), dice, text=True), recall(dice)]
    batch = made(samples, scribe, model)
    assert {row for row, *_ in batch.guide.copies} >= {0, 2}
    for row, at, source in batch.guide.copies:
        assert source <= at
        assert batch.ids[row, at + 1] == batch.ids[row, source]


def test_a_reading_is_of_the_frame_that_is_told_of(scribe: Scribe, model: Tiny) -> None:
    films, dice = Films([played("S1"), played("Q1")]), np.random.default_rng(2)
    samples = [verify(films, dice, text=False) for _ in range(6)]
    batch = made(samples, scribe, model)
    pictures = _pictures(batch, model.image)
    assert (pictures >= 0).sum() == VISUAL * len(batch.frames)
    lengths = [len(scribe.prompt(one.question, pictures=True)) + len(scribe.reply(one.reply, 0)[0]) for one in samples]
    assert [int((row != FILLED).sum()) for row in pictures] == lengths
    assert len(batch.guide.readings) >= 3 * len(samples)
    for row, at, frame, _ in batch.guide.readings:
        assert frame // 3 == row
        here = (pictures[row] == frame).nonzero()[:, 0]
        assert len(here) == VISUAL
        assert at > here[-1]


@pytest.mark.parametrize("off", [0, 1])
def test_the_loss_is_small_for_the_right_look_alone(off: int) -> None:
    """One row of eight tokens, of which token 2 is a cell: a head whose look is sharp, at the right token or beside it."""
    length, width = 8, 8
    keys = torch.eye(length, width).expand(1, 2, length, width)

    def looking(back: int) -> torch.Tensor:
        asked = torch.eye(length).roll(back, 0)  # token t looks at t - back
        return 100 * asked.expand(1, 6, length, width).clone()

    at, source = 6, 2
    sharp = looking(at - source - off)
    behind = torch.stack(
        [looking(1 + off)[:, 0], looking(2 + off)[:, 0], looking(3 + off)[:, 0], *[sharp[:, 0]] * 3], 1
    )
    watched = dict(zip(LAYERS, ((behind, keys), (sharp, keys), (sharp, keys)), strict=True))
    pictures = torch.full((1, length), -1)
    pictures[0, source] = 0
    guide = Guide([(0, at, source)], [(0, at, 0, GOAL)])
    cells = np.zeros((1, 1, 3), bool)
    cells[0, 0, GOAL] = True
    loss = float(loss_of_guide(watched, guide, pictures, cells, torch.Generator().manual_seed(0)))
    assert loss < 1e-3 if off == 0 else loss > 10


def test_a_thing_that_is_not_seen_guides_nothing() -> None:
    keys = torch.zeros(1, 2, 3, 8)
    watched = {layer: (torch.zeros(1, 6, 3, 8), keys) for layer in LAYERS}
    guide = Guide([], [(0, 2, 0, GOAL)])
    pictures = torch.tensor([[0, -1, -1]])
    assert loss_of_guide(watched, guide, pictures, np.zeros((1, 1, 3), bool), torch.Generator()) == 0
