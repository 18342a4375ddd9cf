"""Token ids to vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from onnx import TensorProto

from compass_edge.engines.architecture import Decoder
from compass_edge.export.graph import Graph
from compass_edge.export.matrix import Block, narrowed
from compass_edge.export.quantize import per_row

_NUMPY = {"fp32": np.float32, "fp16": np.float16, "int8": np.int8}
_ONNX = {"fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16, "int8": TensorProto.INT8}


def write_embedding(folder: Path, decoder: Decoder, table: Block, precision: str, *, half: bool) -> None:
    """The table is written row by row as it is read: it is the largest tensor of most checkpoints.

    fp16 is exact for weights that were trained in it and loses bfloat16's smallest ones; int8 has a scale a row.
    """
    dtype = np.dtype(_NUMPY[precision])
    scales: list[np.ndarray] = []

    def pieces() -> Iterator[bytes]:
        for piece in table.pieces():
            if precision == "int8":
                steps, scale = per_row(piece)
                scales.append(scale)
                yield steps.tobytes()
            else:
                yield narrowed(piece, dtype, table.tensor).tobytes()

    with Graph(folder, "embedding", half=half) as g:
        ids = g.input("ids", np.int64, ["B", "S"])
        shape = (decoder.vocabulary, decoder.hidden)
        size = int(np.prod(shape)) * dtype.itemsize
        g.stored("table", _ONNX[precision], shape, pieces(), size)
        rows = g.op("Gather", ["table", ids], axis=0)
        if dtype != g.floats:
            rows = g.cast(rows, g.floats)
        if precision == "int8":
            scale = g.weight("scale", np.concatenate(scales).astype(g.floats)[:, None])
            rows = g.op("Mul", [rows, g.op("Gather", [scale, ids], axis=0)])
        g.output(rows, "embeddings", g.floats, ["B", "S", decoder.hidden])
