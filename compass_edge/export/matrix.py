"""The matrix of a linear layer, [outputs, inputs], read piece by piece from where the checkpoint keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compass_edge.errors import UsageError
from compass_edge.export.checkpoint import Checkpoint

Float: TypeAlias = NDArray[np.float32]
_PIECE = 64 << 20  # bytes of float32 at a time


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one tensor, all of them or in an order of their own."""

    checkpoint: Checkpoint = field(repr=False)
    tensor: str
    stored: tuple[int, ...]  # the shape that the config foresees; [rows, ...] is read as [rows, the rest]
    order: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    @property
    def rows(self) -> int:
        return self.stored[0] if self.order is None else len(self.order)

    @property
    def columns(self) -> int:
        return int(np.prod(self.stored[1:]))

    def pieces(self) -> Iterator[Float]:
        if self.order is not None:
            yield _read(self.checkpoint, self.tensor, self.stored).reshape(self.stored[0], -1)[self.order]
            return
        step = max(1, _PIECE // (4 * self.columns))
        for start in range(0, self.rows, step):
            rows = slice(start, min(start + step, self.rows))
            yield _read(self.checkpoint, self.tensor, self.stored, rows).reshape(-1, self.columns)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Several blocks below one another: layers with a common input are multiplied in one go."""

    name: str
    blocks: tuple[Block, ...]
    bias: Float | None = field(default=None, compare=False, repr=False)

    @property
    def rows(self) -> int:
        return sum(block.rows for block in self.blocks)

    @property
    def columns(self) -> int:
        return self.blocks[0].columns

    def pieces(self) -> Iterator[tuple[slice, Float]]:
        """Which rows, and the rows."""
        start = 0
        for block in self.blocks:
            for piece in block.pieces():
                yield slice(start, start + len(piece)), piece
                start += len(piece)


class Weights:
    """A checkpoint seen from one of its modules: `prefix` is put before every name."""

    def __init__(self, checkpoint: Checkpoint, prefix: str = "") -> None:
        self.checkpoint, self.prefix = checkpoint, prefix

    def at(self, prefix: str) -> Weights:
        return Weights(self.checkpoint, self.prefix + prefix)

    def vector(self, name: str, size: int) -> Float:
        return _read(self.checkpoint, self.prefix + name, (size,))

    def tensor(self, name: str, shape: Sequence[int]) -> Float:
        return _read(self.checkpoint, self.prefix + name, tuple(shape))

    def linear(self, name: str, rows: int, columns: int, *, bias: bool = False) -> Matrix:
        return self.stacked((name,), (rows,), columns, bias=bias)

    def stacked(self, names: Sequence[str], rows: Sequence[int], columns: int, *, bias: bool = False) -> Matrix:
        """The linear layers `names` as one."""
        blocks = tuple(self.block(f"{name}.weight", (size, columns)) for name, size in zip(names, rows, strict=True))
        biases = None
        if bias:
            biases = np.concatenate([self.vector(f"{name}.bias", size) for name, size in zip(names, rows, strict=True)])
        return Matrix(self.prefix + "+".join(names), blocks, biases)

    def block(self, name: str, shape: Sequence[int], order: NDArray[np.int64] | None = None) -> Block:
        return Block(self.checkpoint, self.prefix + name, tuple(shape), order)


def narrowed(values: Float, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """As the type that a part computes in."""
    try:
        with np.errstate(over="raise"):
            return values.astype(dtype, copy=False)
    except FloatingPointError as error:
        raise UsageError(
            f"The tensor '{name}' holds {np.abs(values).max():.3g}, and float16 ends at 65504. Choose a precision without fp16 "
            "for this part."
        ) from error


def _read(checkpoint: Checkpoint, name: str, shape: tuple[int, ...], rows: slice | None = None) -> Float:
    """Of the shape that the config foresees, and every number is one."""
    values = checkpoint.read(name, shape, rows=rows)
    if not (np.isfinite(values.min()) and np.isfinite(values.max())):
        raise UsageError(
            f"The tensor '{name}' in '{checkpoint.folder}' holds infinity or what is no number (NaN). The checkpoint is damaged, "
            "or its training failed: fetch it again."
        )
    return values
