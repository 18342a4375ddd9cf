"""One safetensors file: 8 bytes of length, a JSON header, a buffer. Parsed here, because a header decides what is read where.

A file that contradicts itself anywhere is refused as a whole: half a checkpoint is no checkpoint.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.errors import CompassError, IntegrityError, UsageError

HEADER_LIMIT = 100_000_000  # bytes; the format's own limit
_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "C64": 64, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32,
    "U16": 16, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
_READ_AS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_AGAIN = "The file is damaged: fetch it again."


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """`begin` and `end` are bytes of the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class SafetensorsFile:
    """Only the header is read when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.size = path.stat().st_size
            header, start = _read_header(path, self.size)
        except OSError as error:
            raise CompassError(f"'{path}' cannot be read: {error.strerror or error}.") from error
        self.tensors = {name: _stored(path, name, value, start) for name, value in header.items()}
        _check_ranges(path, self.tensors, start, self.size)

    def read(self, name: str, rows: slice | None = None) -> NDArray[np.float32]:
        """As float32, whatever it is stored as; `rows` is a part of the first axis."""
        tensor = self.tensors[name]
        if tensor.dtype not in _READ_AS:
            raise UsageError(
                f"The tensor '{name}' in '{self.path}' is stored as {tensor.dtype}, and only {', '.join(_READ_AS)} are read. "
                "Take the checkpoint as it was before it was quantized."
            )
        stored = np.dtype(_READ_AS[tensor.dtype])
        shape, begin = tensor.shape, tensor.begin
        if rows is not None:
            shape, begin = self._part(name, tensor, rows, stored.itemsize)
        if not math.prod(shape):
            return np.empty(shape, np.float32)
        try:
            mapped = np.memmap(self.path, stored, "r", begin, shape)
        except OSError as error:
            raise CompassError(f"'{self.path}' cannot be read: {error.strerror or error}.") from error
        except ValueError as error:
            raise IntegrityError(
                f"'{self.path}' had {self.size} bytes when it was opened and is shorter now, so that the tensor '{name}' "
                "cannot be read. Wait until whatever writes it is done, and try again."
            ) from error
        if tensor.dtype == "BF16":  # the upper half of a float32; numpy has no name for it
            wide = np.array(mapped, np.uint32)
            wide <<= 16
            return wide.view(np.float32)
        try:
            with np.errstate(over="raise"):
                return np.array(mapped, np.float32)
        except FloatingPointError as error:
            raise UsageError(
                f"The tensor '{name}' in '{self.path}' holds numbers that float32 cannot hold. No model needs such weights: "
                "look at how the checkpoint was made."
            ) from error

    def _part(self, name: str, tensor: StoredTensor, rows: slice, itemsize: int) -> tuple[tuple[int, ...], int]:
        if not tensor.shape:
            raise UsageError(f"The tensor '{name}' in '{self.path}' is one number: it has no rows to take a part of.")
        first, last, step = rows.indices(tensor.shape[0])
        if step != 1:
            raise UsageError(f"Rows of the tensor '{name}' can only be read without gaps, and the step was {step}.")
        rest = tensor.shape[1:]
        return (max(last - first, 0), *rest), tensor.begin + first * math.prod(rest) * itemsize


def _read_header(path: Path, size: int) -> tuple[dict[str, Any], int]:
    with path.open("rb") as file:
        prefix = file.read(8)
        if prefix == b"version ":
            raise IntegrityError(
                f"'{path}' is a pointer of Git LFS, not the weights themselves. Fetch them with `git lfs pull`."
            )
        if len(prefix) < 8:
            raise IntegrityError(f"'{path}' has {size} bytes, too few for a safetensors file. {_AGAIN}")
        length = int.from_bytes(prefix, "little")
        if length > HEADER_LIMIT:
            raise IntegrityError(
                f"'{path}' says that its header has {length} bytes; safetensors allows {HEADER_LIMIT}. It is damaged or no "
                "safetensors file: fetch it again."
            )
        if 8 + length > size:
            raise IntegrityError(
                f"'{path}' should have a header of {length} bytes, and the file has only {size}. {_AGAIN}"
            )
        text = file.read(length)
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"The header of '{path}' is not what safetensors writes: {error}. {_AGAIN}") from error
    if not isinstance(header, dict):
        raise IntegrityError(
            f"The header of '{path}' should be a JSON object and is a {type(header).__name__}. {_AGAIN}"
        )
    header.pop("__metadata__", None)
    return header, 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it names '{twice}' twice")
    return found


def _stored(path: Path, name: str, value: Any, start: int) -> StoredTensor:
    """One entry of the header, its offsets turned into bytes of the file."""
    place = f"The tensor '{name}' in '{path}'"
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise IntegrityError(f"{place} should have a dtype, a shape and data_offsets, and has something else. {_AGAIN}")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise IntegrityError(f"{place} has the type {dtype!r}, which safetensors does not have. {_AGAIN}")
    if not _whole_numbers(shape) or len(shape) > 32 or math.prod(n or 1 for n in shape) >= 1 << 48:
        raise IntegrityError(f"{place} has a shape that no tensor has. {_AGAIN}")
    if not _whole_numbers(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise IntegrityError(f"{place} should have two offsets, the first not behind the second. {_AGAIN}")
    needed = math.prod(shape) * _BITS[dtype] / 8
    if offsets[1] - offsets[0] != needed:
        raise IntegrityError(
            f"{place} is {dtype} of shape {shape}, which takes {needed:.0f} bytes, and its offsets span "
            f"{offsets[1] - offsets[0]}. {_AGAIN}"
        )
    return StoredTensor(dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)


def _check_ranges(path: Path, tensors: dict[str, StoredTensor], start: int, size: int) -> None:
    """Every byte behind the header belongs to exactly one tensor."""
    at = start
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.end > size:
            raise IntegrityError(
                f"'{path}' is truncated: the tensor '{name}' ends at byte {tensor.end}, and the file has {size}. Fetch it again."
            )
        if tensor.begin != at:
            fault = "overlaps the one before it" if tensor.begin < at else "leaves a gap before it"
            raise IntegrityError(
                f"The tensor '{name}' in '{path}' begins at byte {tensor.begin}, not at {at}: it {fault}. {_AGAIN}"
            )
        at = tensor.end
    if at != size:
        raise IntegrityError(f"'{path}' should end at byte {at} by its header, and has {size} bytes. {_AGAIN}")
