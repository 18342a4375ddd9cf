"""A prompt as the decoder reads it: each image takes as many tokens as its features have, and every token a position.

`keys` say what stands at each place: the id of a word, or which token of which image. Two prompts with the same keys up to
a place are the same up to that place, positions included; that is all that the reuse of a prefix rests on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.onnx.positions import Grid, positions
from compass_edge.models import Image


@dataclass(frozen=True, slots=True)
class Picture:
    """An image, and where its tokens begin."""

    image: Image
    start: int
    tokens: int

    @property
    def end(self) -> int:
        return self.start + self.tokens


@dataclass(frozen=True, slots=True)
class Prompt:
    ids: NDArray[np.int64]
    keys: NDArray[np.int64]
    positions: NDArray[np.int64]  # [3, tokens]
    next_position: int
    pictures: tuple[Picture, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def until(self, end: int) -> Prompt:
        """Its first tokens. No image may be cut, and nothing may be read behind them."""
        kept = tuple(picture for picture in self.pictures if picture.end <= end)
        return Prompt(self.ids[:end], self.keys[:end], self.positions[:, :end], self.next_position, kept)


def expand(
    ids: Sequence[int], image_token: int, images: Sequence[Image], grid_of: Callable[[Image], tuple[int, int]]
) -> Prompt:
    """`ids` have one `image_token` for each of `images`."""
    runs: list[int | Grid] = []
    made: list[NDArray[np.int64]] = []
    keys: list[NDArray[np.int64]] = []
    pictures: list[Picture] = []
    whole = np.array(ids, np.int64)
    places = np.flatnonzero(whole == image_token)
    if len(places) != len(images):
        raise AssertionError(f"{len(places)} image tokens for {len(images)} images")
    begin = length = 0
    for place, image in zip([*places, len(whole)], [*images, None], strict=True):
        words = whole[begin:place]
        made.append(words)
        keys.append(words)
        runs.append(len(words))
        length += len(words)
        if image is None:
            break
        grid = Grid(1, *grid_of(image))
        made.append(np.full(grid.tokens, image_token, np.int64))
        keys.append(_image_key(image.digest) - np.arange(grid.tokens, dtype=np.int64))
        pictures.append(Picture(image, length, grid.tokens))
        runs.append(grid)
        length += grid.tokens
        begin = int(place) + 1
    placed, following = positions(runs)
    return Prompt(np.concatenate(made), np.concatenate(keys), placed, following, tuple(pictures))


def _image_key(digest: str) -> int:
    """Negative, so that it is no word's; with room below for the image's tokens."""
    hashed = hashlib.blake2b(digest.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return -1 - (int.from_bytes(hashed, "little") >> 2)
