"""A decoder that has grown says what it said before, and what is new can learn."""

from __future__ import annotations

import pytest

for needed in ("torch", "transformers"):
    pytest.importorskip(needed)

import torch

from training.growth import grown, size_of
from training.model import HEAD, Size, Tiny, config
from training.tower import TOKENS

SMALL, LARGE = Size(heads=6, kv_heads=2), Size(heads=9, kv_heads=3)


def pair() -> tuple[Tiny, Tiny]:
    torch.manual_seed(0)
    small, large = (Tiny(config(size, 16, TOKENS)) for size in (SMALL, LARGE))
    large.load_state_dict(grown(small.state_dict(), LARGE))
    return small, large


def test_it_says_what_it_said_before() -> None:
    small, large = pair()
    ids = torch.randint(6, 16, (2, 12))
    positions = torch.arange(12).expand(3, 2, 12)
    with torch.no_grad():
        before, after = (model.decoder(ids, positions) for model in (small, large))
    assert torch.allclose(before, after, atol=1e-5)


def test_its_new_heads_look_at_something_and_can_learn() -> None:
    _, large = pair()
    ids = torch.randint(6, 16, (2, 12))
    large.decoder(ids, torch.arange(12).expand(3, 2, 12)).square().sum().backward()
    queries, *_ = large.watched[0]
    assert queries[:, 6:].abs().min() > 0
    assert all(
        layer.self_attn.o_proj.weight.grad[:, 6 * HEAD :].abs().sum() > 0 for layer in large.model.language_model.layers
    )


def test_a_checkpoint_tells_its_size() -> None:
    small, large = pair()
    assert size_of(small.state_dict()) == SMALL
    assert size_of(large.state_dict()) == LARGE
    assert all(value is large.state_dict()[name] or torch.equal(value, large.state_dict()[name])
               for name, value in grown(large.state_dict(), LARGE).items())  # fmt: skip
