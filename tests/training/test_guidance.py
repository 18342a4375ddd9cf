"""Where to look: the source of a copied name, the frame and the thing of a word that is read, and a loss that is small only there."""

from __future__ import annotations

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from pathlib import Path

import torch
from performed import played

from training.batch import Scribe, made, pictures_of
from training.drafts import DRAFTED, drafts
from training.films import Films
from training.footage import HAND
from training.guidance import FILLED, REPEATED, Guide, loss_of_guide, loss_of_words, read
from training.model import HEAD, VISUAL, Size, Tiny, config
from training.orienter_samples import first_look
from training.recall import recall
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


def test_what_is_read_off_a_move() -> None:
    told = [(MOVED[slice(*span)], frame, entry) for span, frame, entry in read(MOVED)]
    assert told == [
        ("blue block", 0, 0), ("empty", 0, 1), ("open", 0, 2), ("empty", 1, 0), ("empty", 1, 1), ("blue block", 1, 2),
    ]  # fmt: skip


def test_what_is_read_off_a_button_and_a_list() -> None:
    reply = '{"start": "red button: up", "during": "red button: down", "candidate": "red button: up", "change": "none"}'
    assert [(reply[slice(*span)], frame, entry) for span, frame, entry in read(reply)] == [
        ("up", 0, 0), ("down", 1, 0), ("up", 2, 0),
    ]  # fmt: skip
    reply = '{"objects": [{"name": "red block at white mat", "count": 1}, {"name": "lamp", "count": 1}]'
    assert [(reply[slice(*span)], frame, entry) for span, frame, entry in read(reply)] == [
        ("red block at white mat", 0, 0), ("lamp", 0, 1),
    ]  # fmt: skip


def test_a_word_is_repeated_from_an_earlier_one_and_never_from_what_is_read(scribe: Scribe, model: Tiny) -> None:
    dice = np.random.default_rng(1)
    samples = [recall(dice), first_look(drafts(dice, 4, DRAFTED["first"]), dice, text=True), recall(dice)]
    batch = made(samples, scribe, model)
    assert {row for row, _ in batch.guide.repeats} >= {0, 2}
    words = set()
    for row, at in batch.guide.repeats:
        assert batch.weights[row, at + 1] > 0
        assert (batch.names[row, : at + 1] == batch.names[row, at + 1]).any()
        words.add(scribe.tokenizer.decode([int(batch.ids[row, at + 1])]).strip())
    assert len(words) > 3
    assert all(REPEATED.fullmatch(word) for word in words)
    films = Films([played("S1")])
    batch = made([verify(films, dice, text=False) for _ in range(8)], scribe, model)
    read_off = {(row, at) for row, at, *_ in batch.guide.readings}
    assert read_off
    assert not read_off & set(batch.guide.repeats)


def test_every_cell_and_word_has_its_heading(scribe: Scribe, model: Tiny) -> None:
    films, dice = Films([played("S1")]), np.random.default_rng(2)
    batch = made([verify(films, dice, text=False)], scribe, model)
    text = [scribe.tokenizer.decode([int(token)]) for token in batch.ids[0]]
    pictures = pictures_of(batch, model.image)[0]
    headings = {at: text[of] for _, at, of in batch.guide.headings}
    cells = [headings[at] for at in (pictures >= 0).nonzero()[:, 0].tolist()]
    assert [cells[0], cells[VISUAL], cells[2 * VISUAL]] == [
        "Frame 1, at the start of the step:\n", "Frame 2, during the step:\n", "Frame 3, when it may be finished:\n",
    ]  # fmt: skip
    assert all(cells[at] == cells[at - at % VISUAL] for at in range(3 * VISUAL))
    told = [heading for at, heading in headings.items() if pictures[at] < 0]
    assert {'{"start": "', ', "during": "', ', "candidate": "'} <= set(told)


def test_a_reading_is_of_the_frame_that_is_told_of(scribe: Scribe, model: Tiny) -> None:
    films, dice = Films([played("S1"), played("Q1")]), np.random.default_rng(2)
    samples = [verify(films, dice, text=False) for _ in range(6)]
    batch = made(samples, scribe, model)
    pictures = pictures_of(batch, model.image)
    assert (pictures >= 0).sum() == VISUAL * len(batch.frames)
    lengths = [len(scribe.prompt(one.question, pictures=True)) + len(scribe.reply(one.reply, 0)[0]) for one in samples]
    assert [int((row != FILLED).sum()) for row in pictures] == lengths
    assert len(batch.guide.readings) >= 3 * len(samples)
    for row, at, frame, numbers in batch.guide.readings:
        assert frame // 3 == row
        here = (pictures[row] == frame).nonzero()[:, 0]
        assert len(here) == VISUAL
        assert at > here[-1]
        assert numbers


def test_a_step_is_read_off_its_things() -> None:
    film = played("S1")
    stage, shot = Films([film]).stages[0], film.shots[0]
    origin, goal, hand = stage.looked_at(stage.part(0), shot)
    kinds = [[stage.script.things[at].kind for at in numbers] for numbers in (origin, goal)]
    assert sorted(kinds[0]) == ["block", "mat"]
    assert kinds[1] == ["mat"]
    assert hand == (HAND,)


@pytest.mark.parametrize("off", [0, 1])
def test_the_loss_is_small_for_the_right_look_alone(off: int) -> None:
    """One row of eight tokens, of which token 2 is a cell: heads whose looks are sharp, at the right token or beside it."""
    length, width = 8, 8
    keys = torch.eye(length, width).expand(1, 3, length, width)

    def looking(back: int) -> torch.Tensor:
        return 100 * torch.eye(length).roll(back, 0)  # token t looks at t - back

    at, source = 6, 2
    behind = torch.stack([looking(0)] * 6 + [looking(back + off) for back in (1, 2, 3)])[None]
    sharp = looking(at - source - off).expand(1, 9, length, width)
    watched = {0: (behind, keys, keys)} | dict.fromkeys((1, 2, 3, 4), (sharp, keys, keys))
    pictures, names = torch.full((1, length), -1), torch.full((1, length), -1)
    guide = Guide([(0, at, source)], [(0, at)], [])
    names[0, source] = names[0, at + 1] = 3
    maps = np.full((1, 60, 60), 255, np.uint8)
    chance = torch.Generator().manual_seed(0)
    looks = loss_of_guide(watched, guide, names, pictures, maps, chance)
    assert looks.keys() == {"behind", "heading", "repeated"}
    assert all(float(loss) < 1e-3 if off == 0 else float(loss) > 10 for loss in looks.values())
    guide = Guide([], [], [(0, at, 0, (7,))])
    maps[0, :10, 20:30] = 7  # the third cell of the first row
    pictures = torch.full((1, VISUAL + 2), -1)
    pictures[0, :VISUAL] = 0
    keys = torch.eye(VISUAL + 2).expand(1, 3, -1, -1)
    sharp = 100 * torch.eye(VISUAL + 2).roll(VISUAL + 1 - 2 - off, 0).expand(1, 9, -1, -1)
    guide.readings[0] = (0, VISUAL + 1, 0, (7,))
    watched = dict.fromkeys(range(5), (sharp, keys, keys))
    found = loss_of_guide(watched, guide, torch.full_like(pictures, -1), pictures, maps, chance)
    assert float(found["read"]) < 1e-3 if off == 0 else float(found["read"]) > 10


def test_a_head_that_says_what_it_looks_at_has_little_to_learn(model: Tiny) -> None:
    """A head whose every look makes one word, and that word or another one to be repeated."""
    ids = torch.tensor([[500, 501, 502, 503]])
    model.decoder(ids, torch.arange(4).expand(3, 1, 4))
    word, heads = model.model.language_model.embed_tokens.weight[503].detach(), ((3, 6), (4, 6))
    with torch.no_grad():
        for layer, head in heads:
            weight = model.model.language_model.layers[layer].self_attn.o_proj.weight[
                :, head * HEAD : (head + 1) * HEAD
            ]
            wanted = torch.linalg.lstsq(weight, word[:, None]).solution[:, 0]
            model.watched[layer][2][0, head] = wanted
        right, wrong = (float(loss_of_words(model, Guide([], [(0, at)], []), ids)["said"]) for at in (2, 1))
    assert right < wrong - 1
    assert loss_of_words(model, Guide([], [], []), ids) == {}


def test_a_thing_that_is_not_seen_guides_nothing() -> None:
    nothing = torch.zeros(1, 9, 3, 8)
    watched = dict.fromkeys(range(5), (nothing, nothing[:, :3], nothing))
    guide, pictures = Guide([], [], [(0, 2, 0, (7,))]), torch.tensor([[0, -1, -1]])
    maps = np.full((1, 60, 60), 255, np.uint8)
    assert loss_of_guide(watched, guide, torch.full_like(pictures, -1), pictures, maps, torch.Generator()) == {}
