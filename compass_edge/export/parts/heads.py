"""What a decoder's hidden states are turned into: logits over the vocabulary, or RoboMeter's progress and success."""

from __future__ import annotations

import numpy as np

from compass_edge.export.dialects.dialect import layer_norm
from compass_edge.export.matrix import Block, Matrix, Weights
from compass_edge.export.parts.decoder import Head, Writer
from compass_edge.export.recipe import Precision

_EXACT = Precision("float", False)


def logits_head(table: Block) -> Head:
    """`table` [vocabulary, hidden]: the language model's head, or the embedding that it shares."""

    def write(w: Writer, x: str) -> None:
        logits = w.linear(x, Matrix("lm_head", (table,)))
        w.g.output(w.g.cast(logits, np.float32) if w.g.half else logits, "logits", np.float32,
                   ["B", "N", w.decoder.vocabulary])  # fmt: skip

    return write


def robometer_head(heads: Weights, bins: int) -> Head:
    """Progress is the mean of a distribution over `bins` centres from 0 to 1; success a probability.

    The heads are small and decide everything: they stay in floats.
    """

    def write(w: Writer, x: str) -> None:
        g = w.g

        def scored(name: str, width: int) -> str:
            inside = w.decoder.hidden // 2
            y = w.linear(x, heads.linear(f"{name}.0", inside, w.decoder.hidden, bias=True), _EXACT)
            at = heads.at(f"{name}.1.")
            y = layer_norm(g, y, f"{name}.1", at.vector("weight", inside), at.vector("bias", inside), 1e-5)
            y = w.linear(g.op("Gelu", [y]), heads.linear(f"{name}.4", width, inside, bias=True), _EXACT)
            return g.cast(y, np.float32) if g.half else y

        progress = scored("progress_head", bins)
        chances = g.op("Softmax", [progress], axis=-1)
        centres = g.constant(np.linspace(0, 1, bins), np.float32)
        mean = g.op("ReduceSum", [g.op("Mul", [chances, centres]), g.constant([-1])], keepdims=0)
        g.output(mean, "progress", np.float32, ["B", "N"])
        success = g.op("Sigmoid", [g.op("Squeeze", [scored("success_head", 1), g.constant([-1])])])
        g.output(success, "success", np.float32, ["B", "N"])

    return write
