"""Balances a tower: its features and taps become about as large as the decoder's words, each number around zero.

Dense labels do not care how large features are, and a decoder does: what is twenty times as large as its words hardly changes from
layer to layer. The change is folded into the weights of the mergers and of the heads that read them: nothing else is different.

    python -m training.balance FEATURES TOWER.pt OUT.pt OUT_FEATURES
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

_STD = 0.35
_MERGERS = ("merger", "deepstack_merger_list.0")
_HEADS = ("features", "taps")


def main() -> int:
    features, tower, out, out_features = map(Path, sys.argv[1:5])
    paths = sorted(features.glob("*.npy"))
    some = np.concatenate(
        [np.load(path)[:, ::7].reshape(2, -1, np.load(path, mmap_mode="r").shape[-1]) for path in paths[::6]], 1
    )
    some = some.astype(np.float32)
    mean, spread = some.mean(1), some.std(1) / _STD + 1e-4
    found = torch.load(tower, weights_only=True)
    for at, (merger, head) in enumerate(zip(_MERGERS, _HEADS, strict=True)):
        shift, scale = torch.from_numpy(mean[at]), torch.from_numpy(spread[at])
        _fold(found["visual"], f"{merger}.linear_fc2", shift, scale)
        for name in (head, *(("look", "hand.0") if at == 0 else ())):
            weight, bias = found["heads"][f"{name}.weight"], found["heads"][f"{name}.bias"]
            bias += weight @ shift
            weight *= scale
    torch.save(found, out)
    out_features.mkdir(parents=True, exist_ok=True)
    for path in paths:
        made = (np.load(path).astype(np.float32) - mean[:, None, None]) / spread[:, None, None]
        np.save(out_features / path.name, made.astype(np.float16))
    return 0


def _fold(weights: dict[str, torch.Tensor], name: str, shift: torch.Tensor, scale: torch.Tensor) -> None:
    weights[f"{name}.weight"] /= scale[:, None]
    weights[f"{name}.bias"] = (weights[f"{name}.bias"] - shift) / scale


if __name__ == "__main__":
    sys.exit(main())
