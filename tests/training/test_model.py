"""Our passes against those of transformers, on random weights."""

from __future__ import annotations

import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

import numpy as np
import torch

from training.dense import CLASSES, DenseHeads, moved
from training.model import CELLS, GRID, SIDE, VISUAL, Size, Tiny, config
from training.tower import TOKENS, rate

_SMALL = Size(tower=64, tower_depth=2, tower_heads=2, tower_mlp=96, hidden=64, depth=2, heads=2, kv_heads=1, mlp=96)


def made() -> Tiny:
    torch.manual_seed(0)
    return Tiny(config(_SMALL, 64, TOKENS)).eval()


def test_tower_and_decoder_are_those_of_transformers() -> None:
    model = made()
    pictures = torch.randint(0, 255, (2, SIDE, SIDE, 3), dtype=torch.uint8)
    image = [TOKENS["vision_start_token_id"], *[TOKENS["image_token_id"]] * VISUAL, TOKENS["vision_end_token_id"]]
    ids = [10, 11, *image, 12, *image, 13, 14]
    tokens = torch.tensor([ids])
    with torch.no_grad():
        features, taps, _ = model.tower(model.patches(pictures))
        ours = model.decoder(tokens, torch.from_numpy(model.positions(ids))[:, None], features, taps)
        theirs = model.model(
            input_ids=tokens, mm_token_type_ids=(tokens == model.image).int(),
            pixel_values=model.patches(pictures).flatten(0, 1), image_grid_thw=torch.tensor([[1, GRID, GRID]] * 2),
        ).last_hidden_state  # fmt: skip
    assert float((ours - theirs).abs().max()) < 1e-4


def test_what_is_written_with_a_memory_is_what_is_written_without() -> None:
    model = made()
    prompt = [10, 11, 12, 13]
    (written,) = model.write([prompt], None, None, 6, end=5)
    for at in range(len(written)):
        ids = prompt + written[:at]
        with torch.no_grad():
            hidden = model.decoder(torch.tensor([ids]), torch.from_numpy(model.positions(ids))[:, None])
        assert int(model.logits(hidden[0, -1]).argmax()) == written[at]


def test_labels_reach_the_tower() -> None:
    model, heads = made(), DenseHeads(_SMALL.tower, _SMALL.hidden)
    pictures = torch.randint(0, 255, (2, SIDE, SIDE, 3), dtype=torch.uint8)
    wanted = torch.zeros(2, GRID * GRID, len(CLASSES), dtype=torch.uint8)
    heads.loss(*model.tower(model.patches(pictures)), wanted, model.order, torch.zeros(2, 4)).backward()
    assert model.model.visual.patch_embed.proj.weight.grad is not None
    assert CELLS * CELLS == VISUAL


def test_picture_and_map_move_together() -> None:
    picture = np.zeros((SIDE, SIDE, 3), np.uint8)
    picture[100:104, 60:64] = 255
    seen = np.zeros((SIDE // 4, SIDE // 4), np.uint8)
    seen[25, 15] = 1
    dice = np.random.default_rng(0)
    for _ in range(20):
        shifted, placed = moved(picture, seen, dice)
        ((row, column),) = np.argwhere(placed == 1)
        assert shifted[4 * row : 4 * row + 4, 4 * column : 4 * column + 4].min() == 255


def test_the_rate_rises_holds_and_falls() -> None:
    rates = [rate(step, step / 1000, 1.0, warm=100, hold=0.4) for step in range(1000)]
    assert rates[0] == 0.01
    assert rates[100] == rates[400] == 1.0
    assert rates[-1] < 0.03


def test_half_precision_is_nearly_the_same() -> None:
    """In bfloat16 attention is multiplied out; where it is masked must be the same."""
    model = made()
    ids = torch.randint(6, 64, (2, 24))
    positions = torch.arange(24).expand(3, 2, 24)
    with torch.no_grad():
        whole = model.decoder(ids, positions)
        with torch.autocast("cpu", torch.bfloat16):
            half = model.decoder(ids, positions)
    assert (whole - half).abs().mean() < 0.02 * whole.abs().mean()
