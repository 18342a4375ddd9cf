"""The text model: from embeddings (of words and pictures) to what its head gives, with its memory in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compass_edge.engines.architecture import Decoder
from compass_edge.export.dialects.dialect import DeltaInputs, Dialect, Float, Past, Rotation, silu
from compass_edge.export.graph import Graph
from compass_edge.export.matrix import Matrix, Weights
from compass_edge.export.parts.rope import cosines
from compass_edge.export.recipe import PRECISIONS, Precision, Recipe

_EXACT = Precision("float", False)
# Writes what is made of the hidden states [B, N, hidden] at the wanted places, and declares its outputs.
Head = Callable[["Writer", str], None]


@dataclass(frozen=True, slots=True)
class Traits:
    """In what the families differ."""

    offset: float  # norms scale by this much more than their weight says
    head_norms: bool  # queries and keys are normed head by head
    biased: bool  # queries, keys and values have biases
    gated: bool  # what attention gives is gated, by numbers that come with the queries


@dataclass(frozen=True, slots=True)
class Writer:
    """Everything that a layer needs to be written."""

    g: Graph
    dialect: Dialect
    decoder: Decoder
    weights: Weights  # at the text model
    precision: Precision
    block: int

    def linear(self, x: str, matrix: Matrix, precision: Precision | None = None) -> str:
        return self.dialect.linear(self.g, x, matrix, precision or self.precision, self.block)


def write_decoder(
    folder: Path,
    name: str,
    dialect: Dialect,
    decoder: Decoder,
    traits: Traits,
    weights: Weights,
    recipe: Recipe,
    head: Head,
    *,
    cached: bool = True,
) -> None:
    """`cached` False: one prefill from nothing, no memory in or out."""
    precision = PRECISIONS[recipe.decoder]
    with Graph(folder, name, half=precision.half) as g:
        w = Writer(g, dialect, decoder, weights, precision, recipe.block)
        x = g.input("embeddings", g.floats, ["B", "S", decoder.hidden])
        positions = g.input("positions", np.int64, [3, "B", "S"])
        wanted = g.input("wanted", np.int64, ["B", "N"])
        taps = _taps(g, decoder)
        rotation = dialect.rotation(g, *cosines(g, positions, decoder, recipe.positions), x, frames=False)
        past = dialect.past(g, x, decoder, cached=cached)

        def scale(path: str) -> Float:
            made: Float = weights.vector(path, decoder.hidden) + np.float32(traits.offset)
            return made

        index = g.op("Unsqueeze", [wanted, g.constant([2])])
        residual = x
        normed = dialect.rms_norm(
            g, x, "layers.0.input_layernorm", scale("layers.0.input_layernorm.weight"), decoder.epsilon
        )
        for layer, mixer in enumerate(decoder.mixers):
            at = f"layers.{layer}."
            if mixer == "attention":
                mixed = _attention(w, traits, layer, normed, rotation, past)
            else:
                mixed = _delta(w, layer, normed)
            if layer + 1 == decoder.layers:  # from here on nothing looks at the other tokens
                mixed, residual = (g.op("GatherND", [x, index], batch_dims=1) for x in (mixed, residual))
            path = f"{at}post_attention_layernorm"
            normed, residual = dialect.add_rms_norm(g, mixed, residual, path, scale(f"{path}.weight"), decoder.epsilon)
            mixed = _mlp(w, layer, normed)
            if layer < len(taps):
                tap = taps[layer]
                if layer + 1 == decoder.layers:
                    tap = g.op("GatherND", [tap, index], batch_dims=1)
                mixed = g.op("Add", [mixed, tap])
            path = "norm" if layer + 1 == decoder.layers else f"layers.{layer + 1}.input_layernorm"
            normed, residual = dialect.add_rms_norm(g, mixed, residual, path, scale(f"{path}.weight"), decoder.epsilon)
        head(w, normed)


def _taps(g: Graph, decoder: Decoder) -> list[str]:
    """DeepStack: what the tower's taps add after the first layers; zeros where there is no picture."""
    if not decoder.taps:
        return []
    taps = g.input("taps", g.floats, [decoder.taps, "B", "S", decoder.hidden])
    parts = g.split(taps, [1] * decoder.taps, axis=0)
    return [g.op("Squeeze", [part, g.constant([0])]) for part in parts]


def _attention(w: Writer, traits: Traits, layer: int, x: str, rotation: Rotation, past: Past) -> str:
    g, decoder, dialect = w.g, w.decoder, w.dialect
    weights = w.weights.at(f"layers.{layer}.self_attn.")
    queries, keys = decoder.heads * decoder.head, decoder.kv_heads * decoder.head
    joint = w.linear(x, _projections(weights, decoder, traits))
    q, k, v, *gate = g.split(joint, [queries, keys, keys, *([queries] if traits.gated else [])])

    def turned(x: str, name: str, heads: int) -> str:
        if traits.head_norms:
            scale = weights.vector(f"{name}.weight", decoder.head) + np.float32(traits.offset)
            x = g.reshape(x, [0, 0, heads, decoder.head])
            x = dialect.rms_norm(g, x, f"layers.{layer}.{name}", scale, decoder.epsilon)
            x = g.reshape(x, [0, 0, heads * decoder.head])
        return dialect.rotate(g, x, heads, decoder.head, decoder.rotary, rotation)

    q, k = turned(q, "q_norm", decoder.heads), turned(k, "k_norm", decoder.kv_heads)
    mixed = dialect.attend_past(g, q, k, v, layer, decoder, past)
    if gate:
        mixed = g.op("Mul", [mixed, g.op("Sigmoid", [gate[0]])])
    if joint in g.bounds:
        g.bounds[mixed] = g.bounds[
            joint
        ]  # a mean of values is as large as the largest of them, a gate makes it smaller
    return w.linear(mixed, weights.linear("o_proj", decoder.hidden, queries))


def _projections(weights: Weights, decoder: Decoder, traits: Traits) -> Matrix:
    """Queries, keys, values and, where there is one, the gate: one matrix.

    The gate comes interleaved with the queries, head by head; the rows are put in order here.
    """
    queries, keys = decoder.heads * decoder.head, decoder.kv_heads * decoder.head
    if not traits.gated:
        names = ("q_proj", "k_proj", "v_proj")
        return weights.stacked(names, (queries, keys, keys), decoder.hidden, bias=traits.biased)
    rows = np.arange(2 * queries).reshape(decoder.heads, 2, decoder.head)
    both = (2 * queries, decoder.hidden)
    blocks = (
        weights.block("q_proj.weight", both, rows[:, 0].reshape(-1)),
        weights.block("k_proj.weight", (keys, decoder.hidden)),
        weights.block("v_proj.weight", (keys, decoder.hidden)),
        weights.block("q_proj.weight", both, rows[:, 1].reshape(-1)),
    )
    return Matrix(weights.prefix + "qkvg", blocks)


def _delta(w: Writer, layer: int, x: str) -> str:
    g, delta, hidden = w.g, w.decoder.delta, w.decoder.hidden
    assert delta is not None
    weights = w.weights.at(f"layers.{layer}.linear_attn.")
    values = delta.value_heads * delta.value
    names, rows = ("in_proj_qkv", "in_proj_z"), (delta.channels, values)
    mixed, gate = g.split(w.linear(x, weights.stacked(names, rows, hidden)), rows)
    # Small, and what they steer is exponential: never quantized.
    steer = weights.stacked(("in_proj_b", "in_proj_a"), (delta.value_heads,) * 2, hidden)
    update, rate = g.split(w.linear(x, steer, _EXACT), [delta.value_heads] * 2)
    convolution = weights.tensor("conv1d.weight", (delta.channels, 1, delta.kernel))[:, 0]
    inputs = DeltaInputs(
        mixed,
        rate,
        update,
        convolution,
        weights.vector("dt_bias", delta.value_heads),
        -np.exp(weights.vector("A_log", delta.value_heads)),
    )
    recalled = w.dialect.delta(g, inputs, layer, delta)
    scale = weights.vector("norm.weight", delta.value)
    normed = w.dialect.gated_norm(
        g, recalled, gate, f"layers.{layer}.gated_norm", scale, w.decoder.epsilon, delta.value_heads
    )
    return w.linear(normed, weights.linear("out_proj", hidden, values))


def _mlp(w: Writer, layer: int, x: str) -> str:
    weights, hidden, width = w.weights.at(f"layers.{layer}.mlp."), w.decoder.hidden, w.decoder.mlp
    # Apart: cutting one product in two would copy it. What quantizing x takes is shared, equal nodes are computed once.
    gate, up = (w.linear(x, weights.linear(name, width, hidden)) for name in ("gate_proj", "up_proj"))
    return w.linear(w.g.op("Mul", [silu(w.g, gate), up]), weights.linear("down_proj", hidden, width))
