"""Weights in fewer bits. Each function takes a matrix [N, K] (outputs by inputs) and says how far off it may be."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Float: TypeAlias = NDArray[np.float32]


def per_row(weight: Float, bits: int = 8) -> tuple[NDArray[np.int8], Float]:
    """Signed steps and a scale for each row; off by at most half a step, of which the largest weight has 2^(bits - 1) - 1."""
    most = (1 << (bits - 1)) - 1
    scale = (np.abs(weight).max(axis=1) / np.float32(most)).astype(np.float32)
    scale[scale == 0] = 1
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def blocks(weight: Float, bits: int, block: int) -> tuple[NDArray[np.uint8], Float]:
    """[N, K / block, bytes] and [N, K / block] as MatMulNBits reads them: unsigned, zero at the middle, low half first.

    The largest weight of a block takes the end of the range that has one step more (-8 of -8..7), with its sign in the
    scale: half a step is gained. What lies beyond the other end is off by a whole step, the rest by half of one.
    """
    rows, columns = weight.shape
    groups = -(-columns // block)
    padded = np.zeros((rows, groups * block), np.float32)
    padded[:, :columns] = weight
    grouped = padded.reshape(rows, groups, block)
    half = 1 << (bits - 1)
    largest = np.take_along_axis(grouped, np.abs(grouped).argmax(-1)[..., None], -1)[..., 0]
    scale = (largest / -half).astype(np.float32)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    steps = np.clip(np.rint(grouped * inverse[..., None]) + half, 0, 2 * half - 1).astype(np.uint8)
    return (steps[..., 0::2] | (steps[..., 1::2] << 4) if bits == 4 else steps), scale


def symmetric_blocks(weight: Float, bits: int, block: int) -> tuple[NDArray[np.int8], Float]:
    """[N, K] signed steps and [N, K / block] positive scales, as DequantizeLinear reads them. K must be whole blocks."""
    rows, columns = weight.shape
    grouped = weight.reshape(rows, columns // block, block)
    most = (1 << (bits - 1)) - 1
    scale = (np.abs(grouped).max(-1) / np.float32(most)).astype(np.float32)
    scale[scale == 0] = 1
    return np.rint(grouped / scale[..., None]).astype(np.int8).reshape(rows, columns), scale


E4M3_MOST = 448.0
_LEAST_SCALE = 2.0**-14  # of a half that is not subnormal: floats lose nothing by a scale that is too large


def e4m3_rows(weight: Float) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Bits of FLOAT8E4M3FN and a scale for each row; off by at most a sixteenth of a weight, or of the row's smallest step."""
    from ml_dtypes import float8_e4m3fn

    scale = np.maximum(np.abs(weight).max(axis=1) / E4M3_MOST, _LEAST_SCALE).astype(np.float16)
    steps = np.clip(weight / scale.astype(np.float32)[:, None], -E4M3_MOST, E4M3_MOST)  # a scale may be rounded down
    return steps.astype(float8_e4m3fn).view(np.uint8), scale


def packed_int4(steps: NDArray[np.int8]) -> bytes:
    """ONNX's INT4: two to a byte, low half first."""
    flat = steps.reshape(-1)
    return bytes(((flat[0::2] & 0xF) | ((flat[1::2] & 0xF) << 4)).astype(np.uint8))
