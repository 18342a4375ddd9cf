"""Plain ONNX: no operator of one runtime's own, no NonZero, no control flow. What TensorRT takes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from compass_edge.engines.architecture import Decoder, Delta
from compass_edge.errors import UsageError
from compass_edge.export.dialects.closed_delta import LONGEST, closed_delta
from compass_edge.export.dialects.dialect import (
    DeltaInputs,
    Float,
    Past,
    Rotation,
    cache_shape,
    float_matrix,
    silu,
    with_bias,
)
from compass_edge.export.graph import Graph
from compass_edge.export.matrix import Matrix
from compass_edge.export.quantize import E4M3_MOST, e4m3_rows, packed_int4, per_row, symmetric_blocks
from compass_edge.export.recipe import Precision

_SLACK = 1.05  # of a bound: the graph computes in halves and rounds to eight bits


class Standard:
    name = "standard"
    longest_delta = LONGEST

    def linear(self, g: Graph, x: str, matrix: Matrix, precision: Precision, block: int) -> str:
        """Quantized weights are dequantized in the graph; a runtime that can multiply without doing so sees the pattern."""
        if precision.weights == "fp8":
            return self._fp8(g, x, matrix)
        if precision.weights == "float":
            weight = float_matrix(g, matrix)
        elif precision.weights == "int8":
            weight = self._per_column(g, matrix)
        else:
            weight = self._blockwise(g, matrix, 4 if precision.weights == "int4" else 8, block)
        return with_bias(g, g.op("MatMul", [x, weight]), matrix)

    def _fp8(self, g: Graph, x: str, matrix: Matrix) -> str:
        """TensorRT multiplies in FP8 where both sides come out of a DequantizeLinear."""
        bound = g.bounds.get(x)
        if bound is None:
            return with_bias(g, g.op("MatMul", [x, float_matrix(g, matrix)]), matrix)
        bits = np.empty((matrix.columns, matrix.rows), np.uint8)
        scale = np.empty(matrix.rows, np.float16)
        longest = 0.0
        for rows, piece in matrix.pieces():
            made, scale[rows] = e4m3_rows(piece)
            bits[:, rows] = made.T
            longest = max(longest, float(np.linalg.norm(piece, axis=1).max()))
        name = f"{matrix.name}.fp8"
        g.stored(name, TensorProto.FLOAT8E4M3FN, bits.shape, [bits.tobytes()], bits.nbytes)
        weight = g.op("DequantizeLinear", [name, g.weight(f"{name}.scale", scale)], axis=1)
        step = g.constant(max(bound / E4M3_MOST, 2.0**-14), np.float16)
        rounded = g.op(
            "DequantizeLinear", [g.op("QuantizeLinear", [x, step], output_dtype=TensorProto.FLOAT8E4M3FN), step]
        )
        y = with_bias(g, g.op("MatMul", [rounded, weight]), matrix)
        if x in g.lengths:
            offset = 0.0 if matrix.bias is None else float(np.abs(matrix.bias).max())
            g.bounds[y] = _SLACK * (longest * g.lengths[x] + offset)
        return y

    def _per_column(self, g: Graph, matrix: Matrix) -> str:
        steps = np.empty((matrix.columns, matrix.rows), np.int8)
        scale = np.empty(matrix.rows, np.float32)
        for rows, piece in matrix.pieces():
            rounded, scale[rows] = per_row(piece)
            steps[:, rows] = rounded.T
        inputs = [g.weight(f"{matrix.name}.int8", steps), g.weight(f"{matrix.name}.scale", scale.astype(g.floats))]
        return g.op("DequantizeLinear", inputs, axis=1)

    def _blockwise(self, g: Graph, matrix: Matrix, bits: int, block: int) -> str:
        if matrix.columns % block:
            raise UsageError(
                f"Plain ONNX has whole blocks only: {matrix.name} has {matrix.columns} inputs, which are no multiple of "
                f"{block}. Choose a smaller block or another precision for this part."
            )
        steps = np.empty((matrix.columns, matrix.rows), np.int8)
        scale = np.empty((matrix.columns // block, matrix.rows), np.float32)
        for rows, piece in matrix.pieces():
            rounded, scales = symmetric_blocks(piece, bits, block)
            steps[:, rows], scale[:, rows] = rounded.T, scales.T
        name = f"{matrix.name}.int{bits}"
        if bits == 4:
            packed = packed_int4(steps)
            g.stored(name, TensorProto.INT4, steps.shape, [packed], len(packed))
        else:
            g.weight(name, steps)
        inputs = [name, g.weight(f"{name}.scale", scale.astype(g.floats))]
        return g.op("DequantizeLinear", inputs, axis=0, block_size=block)

    def rms_norm(self, g: Graph, x: str, name: str, scale: Float, epsilon: float) -> str:
        """In float32, as the models were trained, whatever the graph's own type."""
        wide = g.cast(x, np.float32) if g.half else x
        mean = g.op("ReduceMean", [g.op("Mul", [wide, wide]), g.constant([-1])], keepdims=1)
        root = g.op("Sqrt", [g.op("Add", [mean, g.constant(epsilon, np.float32)])])
        normed = g.op("Div", [wide, root])
        y = g.op("Mul", [g.cast(normed, g.floats) if g.half else normed, g.weight(name, scale.astype(g.floats))])
        # A vector of root mean square 1 is as long as the root of its width, and none of its numbers is larger.
        g.lengths[y] = g.bounds[y] = _SLACK * float(np.sqrt(len(scale)) * np.abs(scale).max())
        return y

    def add_rms_norm(self, g: Graph, x: str, residual: str, name: str, scale: Float, epsilon: float) -> tuple[str, str]:
        total = g.op("Add", [residual, x])
        return self.rms_norm(g, total, name, scale, epsilon), total

    def rotation(self, g: Graph, cos: str, sin: str, like: str, *, frames: bool) -> Rotation:  # noqa: ARG002
        """[B or 1, S, 1, half]: the same for every head."""
        axes = g.constant([0, 2] if frames else [2])
        return Rotation(g.op("Unsqueeze", [cos, axes]), g.op("Unsqueeze", [sin, axes]), "")

    def rotate(self, g: Graph, x: str, heads: int, width: int, rotated: int, by: Rotation) -> str:
        half = rotated // 2
        left, right, *rest = g.split(
            g.reshape(x, [0, 0, heads, width]), [half, half, *([width - rotated] if rotated < width else [])]
        )
        turned = [
            g.op("Sub", [g.op("Mul", [left, by.cos]), g.op("Mul", [right, by.sin])]),
            g.op("Add", [g.op("Mul", [right, by.cos]), g.op("Mul", [left, by.sin])]),
        ]
        return g.reshape(g.op("Concat", [*turned, *rest], axis=-1), [0, 0, heads * width])

    def attend(self, g: Graph, q: str, k: str, v: str, heads: int, mask: str | None) -> str:
        q, k, v = (g.transpose(g.reshape(x, [0, 0, heads, -1]), [0, 2, 1, 3]) for x in (q, k, v))
        return self._softmax(g, q, k, v, mask)

    def _softmax(self, g: Graph, q: str, k: str, v: str, mask: str | None) -> str:
        """[B, H, S, D] each, to [B, S, H x D]. Queries are scaled before they are multiplied, which halves can hold."""
        depth = g.cast(g.size(v, 3), g.floats)
        scores = g.op("MatMul", [g.op("Div", [q, g.op("Sqrt", [depth])]), g.transpose(k, [0, 1, 3, 2])])
        if mask is not None:
            scores = g.op("Add", [scores, mask])
        mixed = g.op("MatMul", [g.op("Softmax", [scores], axis=-1), v])
        return g.reshape(g.transpose(mixed, [0, 2, 1, 3]), [0, 0, -1])

    def past(self, g: Graph, like: str, decoder: Decoder, *, cached: bool) -> Past:
        """The causal mask, [B, 1, S, P + S]: what is in a row's past counts up to its length, new tokens up to themselves."""
        length = g.size(like, 1)
        at = g.count(length)
        later = g.op("Less", [g.op("Unsqueeze", [at, g.constant([1])]), g.op("Unsqueeze", [at, g.constant([0])])])
        closed, opened = g.number(-1e4 if g.half else -1e9), g.number(0.0)
        mask = g.op("Unsqueeze", [g.op("Where", [later, closed, opened]), g.constant([0, 1])])
        if not cached:
            return Past("", (mask,))
        lengths = g.input("past_lengths", np.int64, ["B"])
        room = g.count(
            g.size(f"past.{decoder.mixers.index('attention')}.key", 2)
        )  # 0, 1, 2, ... as long as the buffers
        ends = g.op("Unsqueeze", [lengths, g.constant([1])])
        beyond = g.op("GreaterOrEqual", [g.op("Unsqueeze", [room, g.constant([0])]), ends])
        old = g.op("Unsqueeze", [g.op("Where", [beyond, closed, opened]), g.constant([1, 2])])
        shape = g.op("Concat", [g.size(like, 0), g.constant([1]), length, g.constant([1])], axis=0)
        old, mask = (g.op("Expand", [part, shape]) for part in (old, mask))
        return Past(lengths, (g.op("Concat", [old, mask], axis=-1),))

    def attend_past(self, g: Graph, q: str, k: str, v: str, layer: int, decoder: Decoder, past: Past) -> str:
        """Gives the new tokens' keys and values only: whoever keeps the cache writes them behind the old ones."""
        k, v = (g.transpose(g.reshape(x, [0, 0, decoder.kv_heads, decoder.head]), [0, 2, 1, 3]) for x in (k, v))
        if past.lengths:
            whole = []
            for name, new in ((f"{layer}.key", k), (f"{layer}.value", v)):
                g.output(new, f"new.{name}", g.floats, cache_shape(decoder, "S"))
                old = g.input(f"past.{name}", g.floats, cache_shape(decoder, "P"))
                whole.append(g.op("Concat", [old, new], axis=2))
            k, v = whole
        group = decoder.heads // decoder.kv_heads
        if group > 1:  # each head of keys serves a group of queries
            k, v = (self._repeat(g, x, decoder, group) for x in (k, v))
        q = g.transpose(g.reshape(q, [0, 0, decoder.heads, decoder.head]), [0, 2, 1, 3])
        return self._softmax(g, q, k, v, past.extra[0])

    def _repeat(self, g: Graph, x: str, decoder: Decoder, group: int) -> str:
        wide = g.op("Unsqueeze", [x, g.constant([2])])
        wide = g.op("Concat", [wide] * group, axis=2)
        shape = g.op("Concat", [g.constant([0, decoder.heads]), g.size(x, 2), g.constant([decoder.head])], axis=0)
        return g.op("Reshape", [wide, shape])

    def delta(self, g: Graph, inputs: DeltaInputs, layer: int, delta: Delta) -> str:
        return closed_delta(g, inputs, layer, delta)

    def gated_norm(self, g: Graph, x: str, gate: str, name: str, scale: Float, epsilon: float, heads: int) -> str:
        shape = [0, 0, heads, len(scale)]
        normed = self.rms_norm(g, g.reshape(x, shape), name, scale, epsilon)
        return g.reshape(g.op("Mul", [normed, silu(g, g.reshape(gate, shape))]), [0, 0, heads * len(scale)])
