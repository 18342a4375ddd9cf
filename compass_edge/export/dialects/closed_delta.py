"""The gated delta rule without a loop.

With decay g, rate beta, state S and unit keys k, a token does S <- e^g S + k beta (v - e^g S^T k)^T and reads S^T q. Over a
run of tokens that is a triangular system: with G the running sum of g and

    L[i, j] = beta_i (k_i . k_j) e^(G_i - G_j)   for j < i,

the values that are really written are (I + L)^-1 (beta v - beta e^G k S_0). The inverse is made of the inverses of squares
along the diagonal, twice as wide each time: with D those of one width and C what L has between two neighbours, the next are
D - D C D. Six doublings for 64 tokens, exact but for rounding, and stable like a forward substitution; powers of L are not:
where keys repeat and little fades, L^16 has numbers of 14 digits that must cancel. A longer run goes in pieces, with the
state handed on.
"""

from __future__ import annotations

import math

import numpy as np

from compass_edge.engines.architecture import Delta
from compass_edge.export.dialects.dialect import DeltaInputs, silu
from compass_edge.export.graph import Graph

LONGEST = 64
_NEVER = -1e9


def closed_delta(g: Graph, inputs: DeltaInputs, layer: int, delta: Delta) -> str:
    """Computes in float32: the running sums of a half would not hold."""
    q, k, v = _mixed(g, inputs, layer, delta)
    shape = ("B", delta.value_heads, delta.key, delta.value)
    state = g.input(f"past.{layer}.state", np.float32, shape)
    rate = _by_head(g, g.op("Sigmoid", [_wide(g, inputs.update)]))
    soft = g.op("Softplus", [g.op("Add", [_wide(g, inputs.rate), g.weight(f"{layer}.dt_bias", inputs.dt_bias)])])
    decay = _by_head(g, g.op("Mul", [soft, g.weight(f"{layer}.decay", inputs.decay)]))  # [B, H, S, 1]

    at = g.count(g.size(inputs.mixed, 1))
    row, column = g.op("Unsqueeze", [at, g.constant([1])]), g.op("Unsqueeze", [at, g.constant([0])])
    later = g.op("Less", [row, column])
    zero, one = g.constant(0, np.float32), g.constant(1, np.float32)
    lower = g.op("Where", [later, zero, one])  # [S, S], with the diagonal
    total = g.op("MatMul", [lower, decay])  # G, [B, H, S, 1]
    # G_i - G_j as the sum of what lies between: the difference of two long sums would have lost its last digits.
    earlier = g.op("Less", [column, row])
    between = g.op("MatMul", [lower, g.op("Where", [earlier, decay, zero])])
    fade = g.op("Exp", [g.op("Where", [later, g.constant(_NEVER, np.float32), between])])  # e^(G_i - G_j), 0 above

    rated = g.op("Mul", [k, rate])
    keys = g.transpose(k, [0, 1, 3, 2])
    near = g.op("Mul", [g.op("MatMul", [rated, keys]), fade])
    solved = _inverse(g, near, at, row, column)

    grown = g.op("Exp", [total])
    known = g.op("MatMul", [g.op("Mul", [rated, grown]), state])
    written = g.op("MatMul", [solved, g.op("Sub", [g.op("Mul", [v, rate]), known])])
    scale = g.constant(delta.key**-0.5, np.float32)
    q = g.op("Mul", [q, scale])
    read = g.op(
        "Add",
        [
            g.op("MatMul", [g.op("Mul", [q, grown]), state]),
            g.op("MatMul", [g.op("Mul", [g.op("MatMul", [q, keys]), fade]), written]),
        ],
    )
    last = g.op("ReduceSum", [decay, g.constant([2])], keepdims=1)  # G of the last token
    left = g.op("Exp", [g.op("MatMul", [g.op("Where", [later, one, zero]), decay])])  # e^(G_last - G_i)
    added = g.op("MatMul", [g.transpose(g.op("Mul", [k, left]), [0, 1, 3, 2]), written])
    g.output(
        g.op("Add", [g.op("Mul", [state, g.op("Exp", [last])]), added]), f"present.{layer}.state", np.float32, shape
    )
    flat = g.reshape(g.transpose(read, [0, 2, 1, 3]), [0, 0, delta.value_heads * delta.value])
    return g.cast(flat, g.floats) if g.half else flat


def _inverse(g: Graph, lower: str, at: str, row: str, column: str) -> str:
    """Of I + `lower`, whose diagonal does not count; [B, H, S, S], and S is at most LONGEST."""
    zero, one = g.constant(0, np.float32), g.constant(1, np.float32)
    within = g.op("Equal", [row, column])
    solved = g.op("Where", [within, one, zero])
    for level in range(int(math.log2(LONGEST))):
        square = g.op("Div", [at, g.constant([2 << level])])
        wider = g.op("Equal", [g.op("Unsqueeze", [square, g.constant([axis])]) for axis in (1, 0)])
        between = g.op("Where", [within, zero, g.op("Where", [wider, lower, zero])])
        passed = between if level == 0 else g.op("MatMul", [g.op("MatMul", [solved, between]), solved])
        solved, within = g.op("Sub", [solved, passed]), wider
    return solved


def _mixed(g: Graph, inputs: DeltaInputs, layer: int, delta: Delta) -> tuple[str, str, str]:
    """Convolution, SiLU, and the three as [B, H, S, D] with unit queries and keys."""
    taps = delta.kernel - 1
    shape = ("B", taps, delta.channels)
    past = g.input(f"past.{layer}.window", np.float32, shape)
    whole = g.op("Concat", [past, _wide(g, inputs.mixed)], axis=1)
    g.output(_cut(g, whole, -taps, None), f"present.{layer}.window", np.float32, shape)
    total = ""
    for tap in range(delta.kernel):
        weight = g.weight(f"{layer}.convolution.{tap}", inputs.convolution[:, tap])
        part = g.op("Mul", [_cut(g, whole, tap, tap - taps or None), weight])
        total = g.op("Add", [total, part]) if total else part
    key = delta.key_heads * delta.key
    q, k, v = g.split(silu(g, total), [key, key, delta.value_heads * delta.value])
    q, k = (_unit(g, x, delta) for x in (q, k))
    v = g.transpose(g.reshape(v, [0, 0, delta.value_heads, delta.value]), [0, 2, 1, 3])
    return q, k, v


def _unit(g: Graph, x: str, delta: Delta) -> str:
    heads = g.reshape(x, [0, 0, delta.key_heads, delta.key])
    squares = g.op("ReduceSum", [g.op("Mul", [heads, heads]), g.constant([-1])], keepdims=1)
    unit = g.op("Div", [heads, g.op("Sqrt", [g.op("Add", [squares, g.constant(1e-6, np.float32)])])])
    group = delta.value_heads // delta.key_heads
    if group > 1:  # each head of keys serves a group of values
        unit = g.op("Concat", [g.op("Unsqueeze", [unit, g.constant([3])])] * group, axis=3)
        unit = g.reshape(unit, [0, 0, delta.value_heads, delta.key])
    return g.transpose(unit, [0, 2, 1, 3])


def _by_head(g: Graph, x: str) -> str:
    """[B, S, H] to [B, H, S, 1]."""
    return g.op("Unsqueeze", [g.transpose(x, [0, 2, 1]), g.constant([3])])


def _wide(g: Graph, x: str) -> str:
    return g.cast(x, np.float32) if g.half else x


def _cut(g: Graph, x: str, start: int, end: int | None) -> str:
    """Along the second axis."""
    return g.op("Slice", [x, g.constant([start]), g.constant([2**62 if end is None else end]), g.constant([1])])
