"""ONNX Runtime in the place of a GPU: the same body, plan, buffers and order of copies, with the graphs instead of engines.

It shows that all of that is right where there is no GPU. It is no way to run a model on a CPU: compass_edge.engines.onnx is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.engine_record import EngineRecord
from compass_edge.engines.onnx.session import Options, open_session
from compass_edge.engines.tensorrt.plan import Memory, Pass
from compass_edge.frames.native import native


class StandIn:
    """Implements Device. Everything is done when it is asked for."""

    name = "stand-in"

    def __init__(self, folder: Path, records: Mapping[str, EngineRecord], options: Options) -> None:
        self._records = records
        self._sessions = {part: open_session(folder / f"{part}.onnx", options) for part in records}
        self._buffers: dict[str, NDArray[np.uint8]] = {}
        self._staging: dict[str, NDArray[np.uint8]] = {}
        self._recorded: dict[Pass, Any] = {}
        self._patcher: Any = None
        self.allocations = 0
        self.done: list[str] = []  # what was asked for, in order

    def open(self, memory: Memory) -> Mapping[str, NDArray[Any]]:
        for kept, sizes in ((self._buffers, memory.buffers), (self._staging, memory.staging)):
            for name, size in sizes.items():
                # Filled with what is no number as a half, a float or a place: what is read before it is written shows.
                kept[name] = np.full(size, 0xFF, np.uint8)
                self.allocations += 1
        return self._staging

    def upload(self, staging: str, start: int, buffer: str, to: int, count: int) -> None:
        _copy(self._staging[staging], start, self._buffers[buffer], to, count)
        self.done.append(f"upload {buffer}")

    def open_patcher(self, settings: Mapping[str, Any]) -> bool:
        self._patcher = native().FramePatcher("host", **settings)
        return True

    def patch(self, frame: Any, buffer: str, to: int, count: int) -> None:
        self._patcher.enqueue(frame, _within(self._buffers[buffer], to, count).ctypes.data, count)
        self.done.append(f"patch {buffer}")

    def download(self, buffer: str, start: int, staging: str, to: int, count: int) -> None:
        _copy(self._buffers[buffer], start, self._staging[staging], to, count)
        self.done.append(f"download {buffer}")

    def copy(self, source: str, start: int, target: str, to: int, count: int) -> None:
        _copy(self._buffers[source], start, self._buffers[target], to, count)
        self.done.append(f"copy {source} {target}")

    def clear(self, buffer: str, start: int, count: int) -> None:
        _within(self._buffers[buffer], start, count)[...] = 0
        self.done.append(f"clear {buffer}")

    def execute(self, run: Pass) -> None:
        self._sessions[run.part].run_with_iobinding(self._bound(run))
        self.done.append(f"execute {run.part}")

    def record(self, run: Pass) -> None:
        self._recorded[run] = self._bound(run)
        self._sessions[run.part].run_with_iobinding(self._recorded[run])
        self.done.append(f"record {run.part}")

    def replay(self, run: Pass) -> None:
        self._sessions[run.part].run_with_iobinding(self._recorded[run])
        self.done.append(f"replay {run.part}")

    def drop(self, run: Pass) -> None:
        del self._recorded[run]

    def finish(self) -> None:
        self.done.append("finish")

    def close(self) -> None:
        self._recorded.clear()

    def _bound(self, run: Pass) -> Any:
        binding, axes = self._sessions[run.part].io_binding(), dict(run.axes)
        for name, tensor in self._records[run.part].tensors.items():
            buffer = _within(self._buffers[f"{run.part}.{name}"], 0, tensor.bytes(axes))
            bind = binding.bind_input if tensor.given else binding.bind_output
            bind(name, "cpu", 0, np.dtype(tensor.dtype), tensor.sized(axes), buffer.ctypes.data)
        return binding


def _copy(source: NDArray[np.uint8], start: int, target: NDArray[np.uint8], to: int, count: int) -> None:
    _within(target, to, count)[...] = _within(source, start, count)


def _within(buffer: NDArray[np.uint8], start: int, count: int) -> NDArray[np.uint8]:
    """On a GPU what is beyond a buffer would be another one."""
    if not 0 <= start <= start + count <= buffer.size:
        raise AssertionError(f"{start} + {count} bytes of a buffer of {buffer.size}")
    return buffer[start : start + count]
