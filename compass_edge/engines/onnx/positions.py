"""Rotary positions of a prompt: words count one by one, a picture takes as much as its longer side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Grid:
    """A picture in the decoder's tokens: frames x rows x columns. `stride` is the positions between two of its frames."""

    frames: int
    rows: int
    columns: int
    stride: float = 1.0

    @property
    def tokens(self) -> int:
        return self.frames * self.rows * self.columns


def word_positions(start: int, count: int) -> NDArray[np.int64]:
    """[3, count]"""
    return np.broadcast_to(np.arange(start, start + count, dtype=np.int64), (3, count))


def grid_positions(start: int, grid: Grid) -> NDArray[np.int64]:
    """[3, tokens]: time, height, width."""
    time = (np.arange(grid.frames) * grid.stride).astype(np.int64)
    axes = np.meshgrid(time, np.arange(grid.rows), np.arange(grid.columns), indexing="ij")
    return np.stack(axes).reshape(3, -1) + start


def after(start: int, grid: Grid) -> int:
    """Where the next word stands: behind the longer side of the picture, however long its frames take (as transformers counts)."""
    return start + max(grid.rows, grid.columns)


def positions(parts: Sequence[int | Grid], start: int = 0) -> tuple[NDArray[np.int64], int]:
    """Of runs of words (their count) and pictures, and the position after them."""
    made: list[NDArray[np.int64]] = [np.zeros((3, 0), np.int64)]
    for part in parts:
        if isinstance(part, Grid):
            made.append(grid_positions(start, part))
            start = after(start, part)
        else:
            made.append(word_positions(start, part))
            start += part
    return np.concatenate(made, axis=1), start
