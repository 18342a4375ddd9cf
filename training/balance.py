"""Balances a tower: its features and taps become about as large as the decoder's words, each number around zero.

Dense labels do not care how large features are, and a decoder does: what is five times as large as its words drowns what attention
adds to it, such as which of three frames it belongs to. The change is folded into the weights of the mergers and of the heads that
read them: nothing else is different.

    python -m training.balance FOOTAGE TOWER.pt OUT.pt
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from training.footage import is_training, load
from training.model import Size, Tiny, config
from training.tower import TOKENS, batch

_STD = 0.3
_PICTURES = 240


def balanced(found: dict[str, Any], features: Tensor, taps: Tensor) -> None:
    """In place. `features` and `taps` [tokens, hidden] are what the tower gives as it is."""
    heads, visual = found["heads"], found["visual"]
    (shift, scale), (tap_shift, tap_scale) = _measured(features), _measured(taps)
    _fold(visual, "merger.linear_fc2", shift, scale)
    _fold(visual, "deepstack_merger_list.0.linear_fc2", tap_shift, tap_scale)
    both = torch.cat([shift, tap_shift]), torch.cat([scale, tap_scale])
    readers = {"features": (shift, scale), "look": (shift, scale), "hand.0": (shift, scale), "taps": (tap_shift, tap_scale),
               "place": both}  # fmt: skip
    for name, (mean, size) in readers.items():
        weight = heads[f"{name}.weight"]
        heads[f"{name}.bias"] = heads[f"{name}.bias"] + weight @ mean
        heads[f"{name}.weight"] = weight * size


def _measured(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and size of each number; what hardly varies is not blown up."""
    spread = values.std(0)
    return values.mean(0), spread.clamp(min=0.3 * float(spread.mean())) / _STD


def _fold(weights: dict[str, Tensor], name: str, shift: Tensor, scale: Tensor) -> None:
    weights[f"{name}.weight"] = weights[f"{name}.weight"] / scale[:, None]
    weights[f"{name}.bias"] = (weights[f"{name}.bias"] - shift) / scale


def main() -> int:
    footage, tower, out = map(Path, sys.argv[1:4])
    found = torch.load(tower, weights_only=True)
    model = Tiny(config(Size(), 16, TOKENS)).eval()
    model.model.visual.load_state_dict(found["visual"])
    films = load(footage, is_training)
    pictures, _, _ = batch(films, np.random.default_rng(0), _PICTURES, shift=True)
    with torch.no_grad():
        features, taps, _ = model.tower(model.patches(pictures))
    balanced(found, features.flatten(0, 1), taps.flatten(0, 1))
    torch.save(found, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
