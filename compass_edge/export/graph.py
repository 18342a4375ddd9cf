"""An ONNX graph in the making. Weights go to its data file as they come, so that memory holds one of them at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 21, 10  # what ONNX Runtime 1.23 and TensorRT 10 both read; 21 brought blockwise DequantizeLinear and INT4
MICROSOFT = "com.microsoft"
_INLINE = 1024  # bytes: smaller tensors stay in the graph, where constants can be folded and shapes seen
_ALIGNMENT = 4096  # so that a runtime can map a weight instead of copying it


class Graph:
    """Use it as a context: leaving it writes `name.onnx` beside `name.onnx.data`."""

    def __init__(self, folder: Path, name: str, *, half: bool = False) -> None:
        self.name, self.half = name, half
        self.floats = np.dtype(np.float16 if half else np.float32)
        self._folder = folder
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._domains: set[str] = set()
        # What the weights say about values, whatever comes in: the longest vector along the last axis, and the largest number.
        self.lengths: dict[str, float] = {}
        self.bounds: dict[str, float] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._data: BinaryIO = (folder / self._data_name).open("wb")

    @property
    def _data_name(self) -> str:
        return f"{self.name}.onnx.data"

    # -- what goes in and out

    def input(self, name: str, dtype: Any, shape: Sequence[int | str]) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, _onnx_type(dtype), list(shape)))
        return name

    def output(self, value: str, name: str, dtype: Any, shape: Sequence[int | str]) -> None:
        if value != name:
            self._nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, _onnx_type(dtype), list(shape)))

    # -- weights and constants

    def weight(self, name: str, array: NDArray[Any]) -> str:
        """A tensor of the checkpoint, once for each name."""
        if name not in self._weights:
            array = np.ascontiguousarray(array)
            self._keep(name, _onnx_type(array.dtype), array.shape, [array.data.cast("B")], array.nbytes)
        return name

    def stored(self, name: str, kind: int, shape: Sequence[int], pieces: Iterable[Any], size: int) -> str:
        """The same from pieces that are written as they come, for what is too large to be held or has no numpy type."""
        if name not in self._weights:
            self._keep(name, kind, shape, pieces, size)
        return name

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        """A small array of the graph's own; equal ones are kept once."""
        array = np.asarray(values, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self._weights[name] = numpy_helper.from_array(array, name)
            self._constants[key] = name
        return self._constants[key]

    def number(self, value: float) -> str:
        """A scalar of the graph's own float type."""
        return self.constant(value, self.floats)

    def _keep(self, name: str, kind: int, shape: Sequence[int], pieces: Iterable[Any], size: int) -> None:
        tensor = onnx.TensorProto(name=name, data_type=kind, dims=list(shape))
        if size <= _INLINE:
            tensor.raw_data = b"".join(bytes(piece) for piece in pieces)
        else:
            start = -(-self._data.tell() // _ALIGNMENT) * _ALIGNMENT
            self._data.seek(start)
            for piece in pieces:
                self._data.write(piece)
            if self._data.tell() - start != size:
                raise AssertionError(f"{name}: {self._data.tell() - start} bytes were written instead of {size}")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", self._data_name), ("offset", str(start)), ("length", str(size))):
                tensor.external_data.add(key=key, value=value)
        self._weights[name] = tensor

    # -- operators

    def op(self, kind: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> str:
        return self.ops(kind, inputs, 1, domain=domain, **attributes)[0]

    def ops(
        self, kind: str, inputs: Sequence[str], outputs: int | Sequence[str], *, domain: str = "", **attributes: Any
    ) -> list[str]:
        """With several outputs, as many as asked for or named as given (an empty name: not wanted)."""
        label = f"{kind}_{len(self._nodes)}"
        names = [f"{label}_{at}" for at in range(outputs)] if isinstance(outputs, int) else list(outputs)
        self._nodes.append(helper.make_node(kind, list(inputs), names, name=label, domain=domain, **attributes))
        self._domains.add(domain)
        return names

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """0 keeps an axis, -1 takes what is left."""
        return self.op("Reshape", [value, self.constant(shape)])

    def transpose(self, value: str, order: Sequence[int]) -> str:
        return self.op("Transpose", [value], perm=list(order))

    def split(self, value: str, widths: Sequence[int], axis: int = -1) -> list[str]:
        if len(widths) == 1:
            return [value]
        return self.ops("Split", [value, self.constant(list(widths))], len(widths), axis=axis)

    def cast(self, value: str, dtype: Any) -> str:
        return self.op("Cast", [value], to=_onnx_type(dtype))

    def size(self, value: str, axis: int) -> str:
        """The length of an axis, as a vector of one."""
        return self.op("Shape", [value], start=axis, end=axis + 1)

    def count(self, length: str) -> str:
        """0, 1, 2, ... below a length that is a vector of one."""
        scalar = self.op("Squeeze", [length, self.constant([0])])
        return self.op("Range", [self.constant(0), scalar, self.constant(1)])

    # -- the file

    def __enter__(self) -> Graph:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._data:
            if kind is None:
                self._data.flush()
                os.fsync(self._data.fileno())  # the graph must not outlive its weights when the power goes
        if kind is None:
            self._save()

    def _save(self) -> None:
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, list(self._weights.values()))
        opsets = [helper.make_opsetid("", OPSET)]
        if MICROSOFT in self._domains:
            opsets.append(helper.make_opsetid(MICROSOFT, 1))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="compass-edge")
        if not (self._folder / self._data_name).stat().st_size:
            (self._folder / self._data_name).unlink()
        partial = self._folder / f".{self.name}.onnx"
        partial.write_bytes(model.SerializeToString())
        partial.replace(self._folder / f"{self.name}.onnx")  # a graph that is there is whole


def _onnx_type(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
