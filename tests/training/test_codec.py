"""What a codec does to pictures, in training."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from training.codec import decoded


def test_every_picture_is_changed_in_its_own_way_and_some_are_left() -> None:
    chance = torch.Generator().manual_seed(0)
    one = torch.randint(0, 256, (1, 24, 24, 3), dtype=torch.uint8, generator=chance)
    made = decoded(one.expand(40, -1, -1, -1).contiguous(), chance)
    assert (made.shape, made.dtype) == ((40, 24, 24, 3), torch.uint8)
    left = [bool((picture == one[0]).all()) for picture in made]
    assert 4 < sum(left) < 24
    assert len({picture.numpy().tobytes() for picture in made}) == 1 + left.count(False)


def test_a_gray_wall_stays_a_gray_wall() -> None:
    wall = torch.full((8, 16, 16, 3), 90, dtype=torch.uint8)
    made = decoded(wall, torch.Generator().manual_seed(1)).float()
    assert (made.mean((1, 2, 3)) - 90).abs().max() < 1
    assert (made.max(-1).values - made.min(-1).values).max() <= 1


def test_colours_run_over_their_edges() -> None:
    half = torch.zeros(30, 8, 8, 3, dtype=torch.uint8)
    half[:, :, :4, 0] = 200
    half[:, :, 4:, 2] = 200
    made = decoded(half, torch.Generator().manual_seed(2)).float()
    assert made[:, :, 4, 0].max() > 20, "red beyond the edge"
    assert made[:, :, 6, 0].max() < 20, "and not far"


def test_half_precision_around_it_changes_nothing() -> None:
    pictures = torch.randint(0, 256, (4, 24, 24, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    plain = decoded(pictures, torch.Generator().manual_seed(3))
    with torch.autocast("cpu", torch.bfloat16):
        assert (decoded(pictures, torch.Generator().manual_seed(3)) == plain).all()
