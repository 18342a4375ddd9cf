"""ONNX Runtime's fused operators: a pass over a layer is a dozen calls instead of a hundred."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compass_edge.engines.architecture import Decoder, Delta
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
from compass_edge.export.graph import MICROSOFT, Graph
from compass_edge.export.matrix import Matrix
from compass_edge.export.quantize import blocks, per_row
from compass_edge.export.recipe import Precision

_INT8_BITS = 7  # AVX2 adds two products in 16 bits: 2 x 255 x 63 fits, with 8 bits it would be cut off silently
_SILENCE = 1e-20  # a token of nothing but zeros
_INT8_ACTIVATIONS = 4  # MatMulNBits quantizes what it multiplies with, block by block: three times as fast on a CPU


class Ort:
    name = "ort"
    longest_delta = 0

    def linear(self, g: Graph, x: str, matrix: Matrix, precision: Precision, block: int) -> str:
        if precision.weights == "float":
            return with_bias(g, g.op("MatMul", [x, float_matrix(g, matrix)]), matrix)
        if precision.weights == "int8":
            return self._dynamic(g, x, matrix)
        return self._blockwise(g, x, matrix, 4 if precision.weights == "int4" else 8, block)

    def _dynamic(self, g: Graph, x: str, matrix: Matrix) -> str:
        """Integers times integers. Each token has a scale of its own, so that its numbers do not depend on its neighbours:
        a prompt read in pieces gives what it gives in one.
        """
        steps = np.empty((matrix.columns, matrix.rows), np.int8)
        scale = np.empty(matrix.rows, np.float32)
        for rows, piece in matrix.pieces():
            rounded, scale[rows] = per_row(piece, _INT8_BITS)
            steps[:, rows] = rounded.T
        peak = g.op("ReduceMax", [g.op("Abs", [x]), g.constant([-1])], keepdims=1)
        peak = g.op("Max", [peak, g.constant(_SILENCE, np.float32)])
        step, zero = g.constant(1 / 127, np.float32), g.constant(128, np.uint8)
        tokens = g.op("QuantizeLinear", [g.op("Div", [x, peak]), step, zero])
        weight, scales = g.weight(f"{matrix.name}.int8", steps), g.weight(f"{matrix.name}.scale", scale)
        y = g.op("MatMulIntegerToFloat", [tokens, weight, step, scales, zero], domain=MICROSOFT)
        return with_bias(g, g.op("Mul", [y, peak]), matrix)

    def _blockwise(self, g: Graph, x: str, matrix: Matrix, bits: int, block: int) -> str:
        groups = -(-matrix.columns // block)
        steps = np.empty((matrix.rows, groups, block * bits // 8), np.uint8)
        scale = np.empty((matrix.rows, groups), np.float32)
        for rows, piece in matrix.pieces():
            steps[rows], scale[rows] = blocks(piece, bits, block)
        name = f"{matrix.name}.int{bits}"
        inputs = [x, g.weight(name, steps), g.weight(f"{name}.scale", scale.astype(g.floats))]
        if matrix.bias is not None:
            inputs += ["", "", g.weight(f"{matrix.name}.bias", matrix.bias.astype(g.floats))]
        return g.op(
            "MatMulNBits",
            inputs,
            domain=MICROSOFT,
            bits=bits,
            block_size=block,
            N=matrix.rows,
            K=matrix.columns,
            accuracy_level=_INT8_ACTIVATIONS,
        )

    def rms_norm(self, g: Graph, x: str, name: str, scale: Float, epsilon: float) -> str:
        weight = g.weight(name, scale.astype(g.floats))
        return g.op("SimplifiedLayerNormalization", [x, weight], axis=-1, epsilon=epsilon)

    def add_rms_norm(self, g: Graph, x: str, residual: str, name: str, scale: Float, epsilon: float) -> tuple[str, str]:
        inputs = [residual, x, g.weight(name, scale.astype(g.floats))]
        outputs = [f"{name}.normed", "", "", f"{name}.sum"]
        g.ops("SkipSimplifiedLayerNormalization", inputs, outputs, domain=MICROSOFT, epsilon=epsilon)
        return outputs[0], outputs[3]

    def rotation(self, g: Graph, cos: str, sin: str, like: str, *, frames: bool) -> Rotation:
        """RotaryEmbedding looks its row up by position: each token gets a row of its own."""
        shape = g.op("Concat", [g.size(like, 0), g.size(like, 1)], axis=0)
        if frames:
            return Rotation(cos, sin, g.op("Expand", [g.count(g.size(like, 1)), shape]))
        tokens = g.op("ReduceProd", [shape], keepdims=1)
        flat = g.op("Concat", [tokens, g.constant([-1])], axis=0)
        cos, sin = (g.op("Reshape", [table, flat]) for table in (cos, sin))
        return Rotation(cos, sin, g.op("Reshape", [g.count(tokens), shape]))

    def rotate(self, g: Graph, x: str, heads: int, width: int, rotated: int, by: Rotation) -> str:
        partial = {"num_heads": heads, "rotary_embedding_dim": rotated} if rotated < width else {}
        return g.op("RotaryEmbedding", [x, by.index, by.cos, by.sin], domain=MICROSOFT, **partial)

    def attend(self, g: Graph, q: str, k: str, v: str, heads: int, mask: str | None) -> str:
        inputs = [q, k, v]
        if mask is not None:
            inputs += ["", "", g.op("Unsqueeze", [mask, g.constant([0, 1])])]
        return g.op("MultiHeadAttention", inputs, domain=MICROSOFT, num_heads=heads)

    def past(self, g: Graph, like: str, decoder: Decoder, *, cached: bool) -> Past:  # noqa: ARG002
        """GroupQueryAttention wants the last index of each row, and the length of the longest."""
        length = g.size(like, 1)
        if cached:
            lengths = g.input("past_lengths", np.int64, ["B"])
        else:
            lengths = g.op("Expand", [g.constant([0]), g.size(like, 0)])
        ends = g.op("Add", [lengths, length])
        last = g.cast(g.op("Sub", [ends, g.constant([1])]), np.int32)
        longest = g.cast(g.op("ReduceMax", [ends], keepdims=0), np.int32)
        return Past(lengths, (last, longest))

    def attend_past(self, g: Graph, q: str, k: str, v: str, layer: int, decoder: Decoder, past: Past) -> str:
        """The cache is one buffer for past and present: the new tokens are written behind the old ones.

        Several new tokens behind a past go one row at a time: the operator takes more rows only from the start or one
        token at a time.
        """
        names = [f"{layer}.key", f"{layer}.value"]
        cached = past.lengths == "past_lengths"
        inputs = [q, k, v]
        if cached:
            inputs += [g.input(f"past.{name}", g.floats, cache_shape(decoder, "P")) for name in names]
        else:
            inputs += ["", ""]
        outputs = [f"attended.{layer}", *(f"present.{name}" for name in names)]
        g.ops(
            "GroupQueryAttention",
            [*inputs, *past.extra],
            outputs,
            domain=MICROSOFT,
            num_heads=decoder.heads,
            kv_num_heads=decoder.kv_heads,
            scale=decoder.head**-0.5,
        )
        if cached:
            for name in names:
                g.output(f"present.{name}", f"present.{name}", g.floats, cache_shape(decoder, "T"))
        return outputs[0]

    def delta(self, g: Graph, inputs: DeltaInputs, layer: int, delta: Delta) -> str:
        """In float32 whatever the graph's own type: its states are, and the operators take one type for all."""
        if g.half:
            mixed, rate, update = (g.cast(x, np.float32) for x in (inputs.mixed, inputs.rate, inputs.update))
            inputs = replace(inputs, mixed=mixed, rate=rate, update=update)
        taps, key = delta.kernel - 1, delta.key_heads * delta.key
        window = ("B", taps, delta.channels)
        state = ("B", delta.value_heads, delta.key, delta.value)
        past = g.input(f"past.{layer}.window", np.float32, window)
        g.ops(
            "CausalConvWithState",
            [inputs.mixed, g.weight(f"{layer}.convolution", inputs.convolution[:, None]), "", past],
            [f"mixed.{layer}", f"present.{layer}.window"],
            domain=MICROSOFT,
            channels_last=1,
        )
        g.output(f"present.{layer}.window", f"present.{layer}.window", np.float32, window)
        # Its own SiLU computes one number at a time, here and in GatedRMSNorm: a third of a prefill.
        q, k, v = g.split(silu(g, f"mixed.{layer}"), [key, key, delta.value_heads * delta.value])
        q, k = (self._unit(g, x, delta) for x in (q, k))
        decay, update = g.ops(
            "LinearAttentionGate",
            [inputs.rate, g.weight(f"{layer}.dt_bias", inputs.dt_bias), g.weight(f"{layer}.decay", inputs.decay),
             inputs.update],
            2,
            domain=MICROSOFT,
        )  # fmt: skip
        g.ops(
            "LinearAttention",
            [q, k, v, g.input(f"past.{layer}.state", np.float32, state), decay, update],
            [f"recalled.{layer}", f"present.{layer}.state"],
            domain=MICROSOFT,
            q_num_heads=delta.key_heads,
            kv_num_heads=delta.value_heads,
            update_rule="gated_delta",
            scale=delta.key**-0.5,
        )
        g.output(f"present.{layer}.state", f"present.{layer}.state", np.float32, state)
        return g.cast(f"recalled.{layer}", g.floats) if g.half else f"recalled.{layer}"

    def _unit(self, g: Graph, x: str, delta: Delta) -> str:
        """Each head to length 1: an RMS norm whose scale undoes the mean, x / sqrt(sum x^2 + 1e-6)."""
        heads = g.reshape(x, [0, 0, delta.key_heads, delta.key])
        scale = np.full(delta.key, delta.key**-0.5, np.float32)
        weight = g.weight(f"unit_{delta.key}", scale)
        normed = g.op("SimplifiedLayerNormalization", [heads, weight], axis=-1, epsilon=1e-6 / delta.key)
        return g.reshape(normed, [0, 0, delta.key_heads * delta.key])

    def gated_norm(self, g: Graph, x: str, gate: str, name: str, scale: Float, epsilon: float, heads: int) -> str:
        normed = self.rms_norm(g, g.reshape(x, [0, 0, heads, len(scale)]), name, scale, epsilon)
        return g.op("Mul", [g.reshape(normed, [0, 0, heads * len(scale)]), silu(g, gate)])
