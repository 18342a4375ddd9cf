"""Safetensors files written by hand, so that they can also be written wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Stored = tuple[str, tuple[int, ...], bytes]


def f32(values: Any) -> Stored:
    array = np.asarray(values, "<f4")
    return "F32", array.shape, array.tobytes()


def bf16(values: Any) -> Stored:
    """Cut off, not rounded: give it numbers that bfloat16 has."""
    array = np.asarray(values, "<f4")
    return "BF16", array.shape, (array.view("<u4") >> 16).astype("<u2").tobytes()


def header_of(tensors: Mapping[str, Stored]) -> dict[str, Any]:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    return header


def write_file(path: Path, header: Any, data: bytes) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def write_safetensors(path: Path, tensors: Mapping[str, Stored]) -> Path:
    return write_file(path, header_of(tensors), b"".join(data for _, _, data in tensors.values()))


def write_checkpoint(folder: Path, tensors: Mapping[str, Stored], config: Any = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "test"} if config is None else config))
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def write_shards(folder: Path, shards: Mapping[str, Mapping[str, Stored]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    places = {}
    for shard, tensors in shards.items():
        write_safetensors(folder / shard, tensors)
        places.update(dict.fromkeys(tensors, shard))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def numbers(*shape: int) -> NDArray[np.float32]:
    """Small whole numbers: every float type has them exactly."""
    return (np.arange(np.prod(shape)) % 100).astype(np.float32).reshape(shape)
