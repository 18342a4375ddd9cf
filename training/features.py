"""Features: what the tower makes of filmed frames, for a decoder that learns together with it and for examinations."""

from __future__ import annotations

import numpy as np
import torch

from training.dense import DenseHeads, hand_of, labels, moved, varied
from training.footage import Footage
from training.model import Tiny

_BATCH = 24


class Fresh:
    """Of frames as they are."""

    def __init__(self, model: Tiny, films: list[Footage]) -> None:
        self._model, self._films = model, films

    @torch.no_grad()
    def of(self, frames: list[tuple[int, int]]) -> tuple[torch.Tensor, torch.Tensor]:
        parts = []
        for start in range(0, len(frames), _BATCH):
            pictures = np.stack([self._films[film].picture(at) for film, at in frames[start : start + _BATCH]])
            parts.append(self._model.tower(self._model.patches(torch.from_numpy(pictures)))[:2])
        features, taps = (torch.cat(both) for both in zip(*parts, strict=True))
        return features, taps


class Live:
    """Of frames in another light and a little aside, for a tower that learns; `loss` is that of the dense labels of what was shown."""

    def __init__(self, model: Tiny, heads: DenseHeads, films: list[Footage], seed: int) -> None:
        self._model, self._heads, self._films = model, heads, films
        self._chance = torch.Generator().manual_seed(seed)
        self.loss = torch.zeros(())
        self.maps = np.zeros((0, 0, 0), np.uint8)  # of the frames that were asked for last

    def of(self, frames: list[tuple[int, int]], dice: np.random.Generator, *, learn: bool,
           films: list[Footage] | None = None) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """With `learn`, gradients go through the tower, and its labels are asked for. One film's frames are moved alike.

        A frame that several samples show is looked at once.
        """
        films, asked = films or self._films, frames
        frames = list(dict.fromkeys(asked))
        seeds = {film: int(dice.integers(1 << 30)) for film, _ in frames}
        shown = [
            moved(films[film].picture(at), films[film].maps[at], np.random.default_rng(seeds[film]))
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
        place = {frame: at for at, frame in enumerate(frames)}
        rows = torch.tensor([place[frame] for frame in asked])
        self.maps = np.stack([seen for _, seen in shown])[rows.numpy()]
        return features[rows], taps[rows]
