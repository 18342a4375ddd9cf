"""Features: what the trained tower makes of every filmed frame, kept on disk, so that the decoder is trained without it.

Each frame is kept as it is and once more in another light and a little aside.

    python -m training.features FOOTAGE STILLS TOWER.pt OUT
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from training.checkpoint import states_of
from training.crew import launched
from training.dense import DenseHeads, hand_of, labels, moved, varied
from training.footage import Footage, load
from training.model import Size, Tiny, config
from training.stills import load_stills
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


class OpeningFeatures:
    """Of openings, which have a frame each."""

    def __init__(self, folder: Path) -> None:
        self._both = np.load(folder / "openings.npy", mmap_mode="r")

    def of(self, frames: list[tuple[int, int]], _dice: np.random.Generator | None) -> tuple[torch.Tensor, torch.Tensor]:
        both = np.stack([self._both[:, film] for film, _ in frames], 1).astype(np.float32)
        return torch.from_numpy(both[0]), torch.from_numpy(both[1])


class Fresh:
    """As Features gives them, from a tower that is still learning."""

    def __init__(self, model: Tiny, films: list[Footage]) -> None:
        self._model, self._films = model, films

    @torch.no_grad()
    def of(self, frames: list[tuple[int, int]], _dice: np.random.Generator | None) -> tuple[torch.Tensor, torch.Tensor]:
        parts = []
        for start in range(0, len(frames), _BATCH):
            pictures = np.stack([self._films[film].pictures[at] for film, at in frames[start : start + _BATCH]])
            parts.append(self._model.tower(self._model.patches(torch.from_numpy(pictures)))[:2])
        features, taps = (torch.cat(both) for both in zip(*parts, strict=True))
        return features, taps


class Live:
    """The same from the pictures themselves, so that the tower learns on; `loss` is that of the dense labels of what was shown."""

    def __init__(self, model: Tiny, heads: DenseHeads, films: list[Footage], seed: int) -> None:
        self._model, self._heads, self._films = model, heads, films
        self._chance = torch.Generator().manual_seed(seed)
        self.loss = torch.zeros(())

    def of(self, frames: list[tuple[int, int]], dice: np.random.Generator, *, learn: bool,
           films: list[Footage] | None = None) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """With `learn`, gradients go through the tower. One film's frames are moved alike."""
        films = films or self._films
        seeds = {film: int(dice.integers(1 << 30)) for film, _ in frames}
        shown = [
            moved(films[film].pictures[at], films[film].maps[at], np.random.default_rng(seeds[film]))
            for film, at in frames
        ]
        patches = self._model.patches(torch.from_numpy(np.stack([picture for picture, _ in shown])))
        with torch.set_grad_enabled(learn):
            features, taps, states = self._model.tower(varied(patches, self._chance))
        self.loss = torch.zeros(())
        if learn:
            wanted = np.stack(
                [labels(films[film], at, seen) for (film, at), (_, seen) in zip(frames, shown, strict=True)]
            )
            hands = np.stack([hand_of(films[film], at) for film, at in frames])
            self.loss = self._heads.loss(
                features, taps, states, torch.from_numpy(wanted), self._model.order, torch.from_numpy(hands)
            )
        return features, taps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("footage", type=Path)
    parser.add_argument("stills", type=Path)
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
    model.model.visual.load_state_dict(states_of(given.tower)["visual"])
    if given.rank == given.crew - 1 and not (given.out / "openings.npy").exists():
        doors = load_stills(given.stills, "opening")
        shown = replace(
            doors[0], frames=list(range(len(doors))), pictures=np.concatenate([one.pictures for one in doors])
        )
        with (given.out / "openings.part").open("wb") as file:
            np.save(file, encode(model, shown, plain=True))
        (given.out / "openings.part").rename(given.out / "openings.npy")
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
