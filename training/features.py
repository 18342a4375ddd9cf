"""Features: what the trained tower makes of every filmed frame, kept on disk, so that the decoder is trained without it.

Each frame is kept as it is and once more in another light and a little aside.

    python -m training.features FOOTAGE TOWER.pt OUT
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from training.crew import launched
from training.dense import moved, varied
from training.footage import Footage, load
from training.model import Size, Tiny, config
from training.tower import TOKENS

_BATCH = 24


def encode(model: Tiny, film: Footage, *, plain: bool) -> NDArray[np.float16]:
    """[2, frames, VISUAL, hidden]: features and taps."""
    dice = np.random.default_rng(len(film.frames))
    chance = torch.Generator().manual_seed(len(film.frames))
    parts = []
    with torch.no_grad():
        for at in range(0, len(film.frames), _BATCH):
            pictures = film.pictures[at : at + _BATCH]
            if not plain:
                pictures = np.stack([moved(picture, film.maps[0], dice)[0] for picture in pictures])
            patches = model.patches(torch.from_numpy(np.ascontiguousarray(pictures)))
            features, taps, _ = model.tower(patches if plain else varied(patches, chance))
            parts.append(torch.stack([features, taps]).half().numpy())
    return np.concatenate(parts, 1)


class Features:
    """Of all films, from disk; a frame's plain or varied one."""

    def __init__(self, folder: Path, films: list[Footage]) -> None:
        self._plain = [np.load(folder / f"{film.key}.0.npy", mmap_mode="r") for film in films]
        self._varied = [np.load(folder / f"{film.key}.1.npy", mmap_mode="r") for film in films]

    def of(self, frames: list[tuple[int, int]], dice: np.random.Generator | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and taps of the frames in order; with dice, films are shown varied half of the time."""
        shown = {film: self._varied if dice is not None and dice.random() < 0.5 else self._plain for film, _ in frames}
        both = np.stack([shown[film][film][:, at] for film, at in frames], 1).astype(np.float32)
        return torch.from_numpy(both[0]), torch.from_numpy(both[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("footage", type=Path)
    parser.add_argument("tower", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.rank < 0:
        return launched("training.features", sys.argv[1:], given.crew)
    torch.set_num_threads(1)
    model = Tiny(config(Size(), 16, TOKENS)).eval()
    model.model.visual.load_state_dict(torch.load(given.tower, weights_only=True)["visual"])
    for film in load(given.footage)[given.rank :: given.crew]:
        for variant in (0, 1):
            path = given.out / f"{film.key}.{variant}.npy"
            if not path.exists():
                made = encode(model, film, plain=variant == 0)
                with path.with_suffix(".part").open("wb") as file:
                    np.save(file, made)
                path.with_suffix(".part").rename(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
