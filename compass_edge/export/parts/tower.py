"""The vision tower: patches of frames to what the decoder reads in place of words.

Frames are rows of the batch: each is its own world of attention, as in the models' own code. Where a patch lies comes from
outside, for it depends on the frame's size alone: cosines and sines of its rotation, and the family's own (four places of
the position table with their weights, or its window).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from compass_edge.engines.architecture import Tower
from compass_edge.export.dialects.dialect import Dialect, Rotation, layer_norm, silu
from compass_edge.export.graph import Graph
from compass_edge.export.matrix import Matrix, Weights
from compass_edge.export.recipe import PRECISIONS, Precision, Recipe

_EXACT = Precision("float", False)
_EPSILON = 1e-6


class TowerWriter:
    """What the two kinds of tower share."""

    def __init__(self, g: Graph, dialect: Dialect, tower: Tower, weights: Weights, recipe: Recipe) -> None:
        self.g, self.dialect, self.tower, self.weights = g, dialect, tower, weights
        self._precision, self._block = PRECISIONS[recipe.vision], recipe.block
        self.patches = g.input("patches", g.floats, ["F", "P", tower.columns])
        half = tower.head // 2
        cos, sin = (g.input(name, g.floats, ["P", half]) for name in ("cos", "sin"))
        self.rotation: Rotation = dialect.rotation(g, cos, sin, self.patches, frames=True)

    def linear(self, x: str, matrix: Matrix, precision: Precision | None = None) -> str:
        return self.dialect.linear(self.g, x, matrix, precision or self._precision, self._block)

    def embed(self, bias: bool) -> str:
        """A convolution whose stride is its kernel: one product."""
        tower = self.tower
        shape = (tower.hidden, 3, tower.temporal, tower.patch, tower.patch)
        block = self.weights.block("patch_embed.proj.weight", shape)
        offset = self.weights.vector("patch_embed.proj.bias", tower.hidden) if bias else None
        return self.linear(self.patches, Matrix("patch_embed", (block,), offset), _EXACT)

    def attention(self, layer: int, x: str, mask: str | None) -> str:
        tower, weights = self.tower, self.weights.at(f"blocks.{layer}.attn.")
        joint = self.linear(x, weights.linear("qkv", 3 * tower.hidden, tower.hidden, bias=True))
        q, k, v = self.g.split(joint, [tower.hidden] * 3)
        q, k = (
            self.dialect.rotate(self.g, part, tower.heads, tower.head, tower.head, self.rotation) for part in (q, k)
        )
        mixed = self.dialect.attend(self.g, q, k, v, tower.heads, mask)
        return self.linear(mixed, weights.linear("proj", tower.hidden, tower.hidden, bias=True))

    def merge(self, x: str) -> str:
        """Patches come square by square: joining a square's is a reshape."""
        return self.g.reshape(x, [0, -1, self.tower.hidden * self.tower.merge**2])

    def give(self, x: str, taps: list[str]) -> None:
        g, out = self.g, self.tower.out
        g.output(x, "features", g.floats, ["F", "M", out])
        if taps:
            parts = [g.op("Unsqueeze", [tap, g.constant([0])]) for tap in taps]
            joined = g.op("Concat", parts, axis=0) if len(parts) > 1 else parts[0]
            g.output(joined, "taps", g.floats, [len(taps), "F", "M", out])


def write_qwen3_tower(folder: Path, dialect: Dialect, tower: Tower, weights: Weights, recipe: Recipe) -> None:
    """Qwen3-VL and Qwen3.5: layer norms, a learned table of positions, and (Qwen3-VL) taps."""
    with Graph(folder, "vision", half=PRECISIONS[recipe.vision].half) as g:
        w = TowerWriter(g, dialect, tower, weights, recipe)
        wide = tower.hidden * tower.merge**2

        def norm(path: str, x: str, width: int = tower.hidden) -> str:
            at = weights.at(f"{path}.")
            return layer_norm(g, x, path, at.vector("weight", width), at.vector("bias", width), _EPSILON)

        def merger(path: str, x: str, norm_after: bool) -> str:
            at = weights.at(f"{path}.")
            x = norm(f"{path}.norm", w.merge(x), wide) if norm_after else w.merge(norm(f"{path}.norm", x))
            x = g.op("Gelu", [w.linear(x, at.linear("linear_fc1", wide, wide, bias=True))])
            return w.linear(x, at.linear("linear_fc2", tower.out, wide, bias=True))

        x = g.op("Add", [w.embed(bias=True), _positions(w)])
        taps: list[str] = []
        for layer in range(tower.depth):
            path = f"blocks.{layer}"
            x = g.op("Add", [x, w.attention(layer, norm(f"{path}.norm1", x), None)])
            at = weights.at(f"{path}.mlp.")
            y = w.linear(norm(f"{path}.norm2", x), at.linear("linear_fc1", tower.mlp, tower.hidden, bias=True))
            y = g.op("Gelu", [y], approximate="tanh")
            x = g.op("Add", [x, w.linear(y, at.linear("linear_fc2", tower.hidden, tower.mlp, bias=True))])
            if layer in tower.taps:
                taps.append(merger(f"deepstack_merger_list.{tower.taps.index(layer)}", x, norm_after=True))
        w.give(merger("merger", x, norm_after=False), taps)


def _positions(w: TowerWriter) -> str:
    """Each patch's place in the table, between four entries."""
    g, tower = w.g, w.tower
    places = g.input("places", np.int64, ["P", 4])
    shares = g.input("shares", g.floats, ["P", 4])
    table = g.weight(
        "positions", w.weights.tensor("pos_embed.weight", (tower.positions, tower.hidden)).astype(g.floats)
    )
    four = g.op("Mul", [g.op("Gather", [table, places], axis=0), g.op("Unsqueeze", [shares, g.constant([2])])])
    return g.op("ReduceSum", [four, g.constant([1])], keepdims=0)


def write_qwen2_tower(folder: Path, dialect: Dialect, tower: Tower, weights: Weights, recipe: Recipe) -> None:
    """Qwen2.5-VL: RMS norms, gated MLPs, and windows that most layers do not look beyond.

    The models' code sorts the patches by window to save work. Here they stay where they are and a mask keeps the windows
    apart: the same numbers, and one graph for any size.
    """
    with Graph(folder, "vision", half=PRECISIONS[recipe.vision].half) as g:
        w = TowerWriter(g, dialect, tower, weights, recipe)
        mask = _window_mask(g)

        def norm(path: str, x: str) -> str:
            scale = weights.vector(f"{path}.weight", tower.hidden)
            return dialect.rms_norm(g, x, path, scale, _EPSILON)

        x = w.embed(bias=False)
        for layer in range(tower.depth):
            path = f"blocks.{layer}"
            sees_all = layer in tower.full_layers
            x = g.op("Add", [x, w.attention(layer, norm(f"{path}.norm1", x), None if sees_all else mask)])
            at = weights.at(f"{path}.mlp.")
            sizes = (tower.mlp, tower.mlp)
            both = w.linear(
                norm(f"{path}.norm2", x), at.stacked(("gate_proj", "up_proj"), sizes, tower.hidden, bias=True)
            )
            gate, up = g.split(both, sizes)
            y = w.linear(g.op("Mul", [silu(g, gate), up]), at.linear("down_proj", tower.hidden, tower.mlp, bias=True))
            x = g.op("Add", [x, y])
        wide = tower.hidden * tower.merge**2
        at = weights.at("merger.")
        x = w.merge(norm("merger.ln_q", x))
        x = g.op("Gelu", [w.linear(x, at.linear("mlp.0", wide, wide, bias=True))])
        w.give(w.linear(x, at.linear("mlp.2", tower.out, wide, bias=True)), [])


def _window_mask(g: Graph) -> str:
    """[P, P], from the window that each patch is in."""
    window = g.input("window", np.int64, ["P"])
    same = g.op("Equal", [g.op("Unsqueeze", [window, g.constant([at])]) for at in (0, 1)])
    return g.op("Where", [same, g.number(0.0), g.number(-1e4 if g.half else -1e9)])
