"""What a description of a model may say, whoever writes it down.

Values are names in the graph. Text and frames are [B, S, width] with heads side by side; shapes in the comments use
B rows, S new tokens, P tokens of the past, H heads, D the width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Decoder, Delta
from compass_edge.export.graph import Graph
from compass_edge.export.matrix import Matrix, narrowed
from compass_edge.export.recipe import Precision

Float: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines as the dialect wants them, made once and used by every layer."""

    cos: str
    sin: str
    index: str  # where a row of theirs is, if the dialect looks them up


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of the tokens before this pass; made once, used by every layer."""

    lengths: str  # [B] tokens of each row's past
    extra: tuple[str, ...]  # the dialect's own


@dataclass(frozen=True, slots=True)
class DeltaInputs:
    mixed: str  # [B, S, channels]: queries, keys, values before the convolution
    rate: str  # [B, S, value heads]: a
    update: str  # [B, S, value heads]: b
    convolution: Float  # [channels, kernel]
    dt_bias: Float
    decay: Float  # -exp(A_log)


class Dialect(Protocol):
    name: str
    longest_delta: int  # new tokens that `delta` takes in one pass; 0: any number

    def linear(self, g: Graph, x: str, matrix: Matrix, precision: Precision, block: int) -> str: ...

    def rms_norm(self, g: Graph, x: str, name: str, scale: Float, epsilon: float) -> str:
        """Over the last axis."""

    def add_rms_norm(self, g: Graph, x: str, residual: str, name: str, scale: Float, epsilon: float) -> tuple[str, str]:
        """The norm of the sum, and the sum."""

    def rotation(self, g: Graph, cos: str, sin: str, like: str, *, frames: bool) -> Rotation:
        """For values like `like`, [B, S, ...], from [B, S, half], or for frames from [S, half], the same for each row."""

    def rotate(self, g: Graph, x: str, heads: int, width: int, rotated: int, by: Rotation) -> str:
        """The first `rotated` of each head's `width` numbers, halves as pairs."""

    def attend(self, g: Graph, q: str, k: str, v: str, heads: int, mask: str | None) -> str:
        """Every token to every other of its row; `mask` [S, S] is added."""

    def past(self, g: Graph, like: str, decoder: Decoder, *, cached: bool) -> Past: ...

    def attend_past(self, g: Graph, q: str, k: str, v: str, layer: int, decoder: Decoder, past: Past) -> str:
        """Each token to those before it and itself. Declares the layer's keys and values in and out, if it is cached."""

    def delta(self, g: Graph, inputs: DeltaInputs, layer: int, delta: Delta) -> str:
        """Convolution, SiLU, gated delta rule. Declares the layer's two states in and out. [B, S, value heads x value]."""

    def gated_norm(self, g: Graph, x: str, gate: str, name: str, scale: Float, epsilon: float, heads: int) -> str:
        """RMS norm of each head, times SiLU of the gate."""


def layer_norm(g: Graph, x: str, name: str, scale: Float, bias: Float, epsilon: float) -> str:
    """The same in every dialect."""
    inputs = [x, g.weight(f"{name}.weight", scale.astype(g.floats)), g.weight(f"{name}.bias", bias.astype(g.floats))]
    return g.op("LayerNormalization", inputs, axis=-1, epsilon=epsilon)


def silu(g: Graph, x: str) -> str:
    return g.op("Mul", [x, g.op("Sigmoid", [x])])


def float_matrix(g: Graph, matrix: Matrix) -> str:
    """[inputs, outputs] as MatMul wants it."""
    name = f"{matrix.name}.matrix"
    whole = np.empty((matrix.columns, matrix.rows), g.floats)
    for rows, piece in matrix.pieces():
        whole[:, rows] = narrowed(piece, g.floats, matrix.name).T
    return g.weight(name, whole)


def with_bias(g: Graph, y: str, matrix: Matrix) -> str:
    if matrix.bias is None:
        return y
    return g.op("Add", [y, g.weight(f"{matrix.name}.bias", matrix.bias.astype(g.floats))])


def cache_shape(decoder: Decoder, length: str) -> Sequence[int | str]:
    return ("B", decoder.kv_heads, length, decoder.head)
