"""Rotary positions of text and pictures: three numbers a token (time, height, width), each turning a part of the head."""

from __future__ import annotations

import numpy as np

from compass_edge.engines.architecture import Decoder
from compass_edge.export.graph import Graph


def cosines(g: Graph, positions: str, decoder: Decoder, longest: int) -> tuple[str, str]:
    """[B, S, half] each, from positions [3, B, S].

    Every number of the half comes from one of the three tables: picking is a product with ones and zeros, which is exact.
    """
    half = decoder.rotary // 2
    powers = np.arange(0, decoder.rotary, 2, dtype=np.float32) / np.float32(decoder.rotary)
    frequency = (1.0 / np.power(np.float32(decoder.theta), powers, dtype=np.float32)).astype(np.float32)
    angles = np.arange(longest, dtype=np.float32)[:, None] * frequency[None]
    pick = g.constant(_owner(decoder)[:, None, None, :] == 1, g.floats)
    made = []
    for name, table in (("cosines", np.cos(angles)), ("sines", np.sin(angles))):
        rows = g.op("Gather", [g.weight(name, table.astype(g.floats)), positions], axis=0)  # [3, B, S, half]
        made.append(g.op("ReduceSum", [g.op("Mul", [rows, pick]), g.constant([0])], keepdims=0))
    assert half == frequency.size
    return made[0], made[1]


def _owner(decoder: Decoder) -> np.ndarray:
    """[3, half] of ones and zeros: whose position turns which pair."""
    half = decoder.rotary // 2
    owner = np.zeros(half, np.int64)
    _, height, width = decoder.sections
    if decoder.interleaved:
        owner[1 : 3 * height : 3] = 1
        owner[2 : 3 * width : 3] = 2
    else:
        owner[decoder.sections[0] :] = 1
        owner[decoder.sections[0] + height :] = 2
    made: np.ndarray = (owner[None] == np.arange(3)[:, None]).astype(np.int64)
    return made
