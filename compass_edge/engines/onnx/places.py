"""Where the patches of a frame lie, as the vision tower wants to know it. It depends on the frame's size alone."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Tower

Inputs: TypeAlias = dict[str, NDArray[Any]]
_THETA = 10000.0


def places(tower: Tower, rows: int, columns: int) -> Inputs:
    """For a grid of patches, in the order in which the preprocessor gives them: square by square."""
    high, wide = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    high, wide = _by_square(high, tower.merge), _by_square(wide, tower.merge)
    inputs = _rotation(tower, high, wide)
    if tower.positions:
        inputs |= _table_places(tower, high, wide, rows, columns)
    if tower.window:
        side = tower.window // tower.patch  # in patches
        inputs["window"] = (high // side) * -(-columns // side) + wide // side
    return inputs


def _by_square(grid: NDArray[np.int64], merge: int) -> NDArray[np.int64]:
    rows, columns = grid.shape
    squares = grid.reshape(rows // merge, merge, columns // merge, merge)
    return np.ascontiguousarray(squares.transpose(0, 2, 1, 3)).reshape(-1)


def _rotation(tower: Tower, high: NDArray[np.int64], wide: NDArray[np.int64]) -> Inputs:
    """A quarter of a head turns with the row, a quarter with the column; the other half is their partner."""
    half = tower.head // 2
    powers = np.arange(0, half, 2, dtype=np.float32) / np.float32(half)
    frequency = (1.0 / np.power(np.float32(_THETA), powers, dtype=np.float32)).astype(np.float32)
    angles = np.concatenate(
        [high[:, None].astype(np.float32) * frequency, wide[:, None].astype(np.float32) * frequency], axis=1
    )
    return {"cos": np.cos(angles), "sin": np.sin(angles)}


def _table_places(tower: Tower, high: NDArray[np.int64], wide: NDArray[np.int64], rows: int, columns: int) -> Inputs:
    """The table is a square picture of positions, stretched over the grid corner to corner: four entries and their shares."""
    side = round(tower.positions**0.5)
    row_at, row_share = _between(high, rows, side)
    column_at, column_share = _between(wide, columns, side)
    at = (row_at[:, :, None] * side + column_at[:, None, :]).reshape(-1, 4)
    share = (row_share[:, :, None] * column_share[:, None, :]).reshape(-1, 4)
    return {"places": at, "shares": np.ascontiguousarray(share)}


def _between(at: NDArray[np.int64], count: int, side: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    exact = at.astype(np.float32) * np.float32((side - 1) / max(count - 1, 1))
    below = np.floor(exact).astype(np.int64)
    over = (exact - below).astype(np.float32)
    entries = np.clip(np.stack([below, below + 1], axis=1), 0, side - 1)
    return entries, np.stack([1 - over, over], axis=1)
