"""TensorRT on a GPU: buffers and staging allocated once, one stream, a recorded CUDA graph a shape.

It has run against stand-ins of CUDA and TensorRT only, never yet on a GPU.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.engine_record import EngineRecord, rebuild_command
from compass_edge.engines.tensorrt.cuda import Cuda
from compass_edge.engines.tensorrt.kernel_cache import KernelCache
from compass_edge.engines.tensorrt.library import Library, Log
from compass_edge.engines.tensorrt.plan import Memory, Pass
from compass_edge.errors import CompassError, IntegrityError
from compass_edge.frames.native import native

_LOWEST = 0  # of a stream's priorities: a language model's decoding, many small kernels, goes before


class Gpu:
    """Implements Device."""

    def __init__(
        self, folder: Path, engines: Mapping[str, tuple[str, EngineRecord]], library: Library, cuda: Cuda
    ) -> None:
        """`engines`: file and record of each part, checked already."""
        self._cuda, self._library = cuda, library
        self._log = Log(library)
        self._records = {part: record for part, (_, record) in engines.items()}
        self._runtime: Any = library.api.Runtime(self._log.logger)
        self._engines = {part: self._engine(folder, *engines[part]) for part in engines}
        self._kernels = {
            part: KernelCache(engine, self._records[part], library.api) for part, engine in self._engines.items()
        }
        some = next(iter(self._records.values()))
        self.name = f"{library.flavour} {library.version}, {some.target}"
        flags = cuda.cudaStreamNonBlocking  # else it would wait for the default stream, and that one for it
        self._stream: Any = cuda.cudaStreamCreateWithPriority(flags, _LOWEST)
        self._buffers: dict[str, int] = {}
        self._pinned: dict[str, int] = {}
        self._scratch, self._scratch_size = 0, 0
        self._patcher: Any = None
        self._contexts: dict[str, Any] = {}  # by part, for shapes that are not recorded
        self._graphs: dict[Pass, tuple[Any, Any]] = {}  # graph, if it could be captured, and its context

    def _engine(self, folder: Path, name: str, record: EngineRecord) -> Any:
        # Mapped: on a Jetson the GPU's copy is in the same memory, and there may be no room for a third.
        with (folder / name).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            engine: Any = self._runtime.deserialize_cuda_engine(content)
        if engine is None:
            raise IntegrityError(
                f"{self._library.flavour} {self._library.version} cannot load the engine '{folder / name}': {self._log.last.rstrip('.')}. "
                f"Build it again: `{rebuild_command(folder.name, record.target)}`."
            )
        names = {engine.get_tensor_name(at) for at in range(engine.num_io_tensors)}
        if names != set(record.tensors):
            raise IntegrityError(
                f"The engine '{folder / name}' has the tensors {', '.join(sorted(names))}, and the manifest says "
                f"{', '.join(sorted(record.tensors))}. Build it again: `{rebuild_command(folder.name, record.target)}`."
            )
        return engine

    def open(self, memory: Memory) -> Mapping[str, NDArray[Any]]:
        cuda = self._cuda
        for name, size in memory.buffers.items():
            self._buffers[name] = int(cuda.cudaMalloc(size))
        # Contexts work one after the other on one stream, and so share one workspace.
        self._scratch_size = max(int(engine.device_memory_size_v2) for engine in self._engines.values())
        if self._scratch_size:
            self._scratch = int(cuda.cudaMalloc(self._scratch_size))
        staging: dict[str, NDArray[Any]] = {}
        for name, size in memory.staging.items():
            self._pinned[name] = int(cuda.cudaMallocHost(size))
            area = (ctypes.c_uint8 * size).from_address(self._pinned[name])
            staging[name] = np.ctypeslib.as_array(area)
        self._contexts = {part: self._context(part) for part in self._engines}
        return staging

    def _context(self, part: str) -> Any:
        context: Any = self._engines[part].create_execution_context(self._kernels[part].strategy)
        if context is None:
            raise CompassError(
                f"TensorRT cannot prepare the engine of the {part}: {self._log.last.rstrip('.')}. Most often the GPU's memory is full: "
                "close what else uses it, or build for fewer or smaller frames."
            )
        if self._scratch_size:
            context.set_device_memory(self._scratch, self._scratch_size)
        for name in self._records[part].tensors:
            context.set_tensor_address(name, self._buffers[f"{part}.{name}"])
        return context

    def upload(self, staging: str, start: int, buffer: str, to: int, count: int) -> None:
        self._copy(self._buffers[buffer] + to, self._pinned[staging] + start, count, "cudaMemcpyHostToDevice")

    def open_patcher(self, settings: Mapping[str, Any]) -> bool:
        if not native().built_with_cuda:
            return False
        self._patcher = native().FramePatcher("cuda", stream=int(self._stream), **settings)
        return True

    def patch(self, frame: Any, buffer: str, to: int, count: int) -> None:
        self._patcher.enqueue(frame, self._buffers[buffer] + to, count)

    def download(self, buffer: str, start: int, staging: str, to: int, count: int) -> None:
        self._copy(self._pinned[staging] + to, self._buffers[buffer] + start, count, "cudaMemcpyDeviceToHost")

    def copy(self, source: str, start: int, target: str, to: int, count: int) -> None:
        self._copy(self._buffers[target] + to, self._buffers[source] + start, count, "cudaMemcpyDeviceToDevice")

    def _copy(self, target: int, source: int, count: int, kind: str) -> None:
        self._cuda.cudaMemcpyAsync(target, source, count, getattr(self._cuda.cudaMemcpyKind, kind), self._stream)

    def clear(self, buffer: str, start: int, count: int) -> None:
        self._cuda.cudaMemsetAsync(self._buffers[buffer] + start, 0, count, self._stream)

    def execute(self, run: Pass) -> None:
        self._enqueue(self._contexts[run.part], run)

    def _enqueue(self, context: Any, run: Pass) -> None:
        axes = dict(run.axes)
        for name, tensor in self._records[run.part].tensors.items():
            if tensor.given and not context.set_input_shape(name, tensor.sized(axes)):
                raise CompassError(
                    f"TensorRT does not take {name} of {list(tensor.sized(axes))} for the {run.part}: {self._log.last.rstrip('.')}."
                )
        if not context.execute_async_v3(int(self._stream)):
            raise CompassError(f"TensorRT could not run the {run.part}: {self._log.last.rstrip('.')}.")

    def record(self, run: Pass) -> None:
        """A context of its own: a graph is undefined once the shapes of the context it was captured from have changed."""
        cuda = self._cuda
        context = self._context(run.part)
        self._enqueue(context, run)  # settles shapes and compiles; neither can be captured
        cuda.cudaStreamSynchronize(self._stream)
        capturable = getattr(context, "is_stream_capturable", None)  # TensorRT-RTX alone has it
        if capturable is not None and not capturable(int(self._stream)):
            self._graphs[run] = (None, context)
            return
        mode = cuda.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        cuda.cudaStreamBeginCapture(self._stream, mode)
        try:
            self._enqueue(context, run)
        finally:
            captured = cuda.cudaStreamEndCapture(self._stream)
        self._graphs[run] = (cuda.cudaGraphInstantiate(captured, 0), context)
        cuda.cudaGraphDestroy(captured)

    def replay(self, run: Pass) -> None:
        graph, context = self._graphs[run]
        if graph is None:
            self._enqueue(context, run)
        else:
            self._cuda.cudaGraphLaunch(graph, self._stream)

    def drop(self, run: Pass) -> None:
        graph, _ = self._graphs.pop(run)
        self._cuda.cudaStreamSynchronize(self._stream)
        if graph is not None:
            self._cuda.cudaGraphExecDestroy(graph)

    def finish(self) -> None:
        self._cuda.cudaStreamSynchronize(self._stream)

    def close(self) -> None:
        """Staging areas are gone with it: whoever holds one must not touch it."""
        cuda = self._cuda
        cuda.cudaStreamSynchronize(self._stream)
        self._patcher = None  # before its stream
        for run in list(self._graphs):
            self.drop(run)
        for kernels in self._kernels.values():
            kernels.save()
        self._contexts.clear()
        self._kernels.clear()
        self._engines.clear()
        for address in (*self._buffers.values(), *([self._scratch] if self._scratch else [])):
            cuda.cudaFree(address)
        for address in self._pinned.values():
            cuda.cudaFreeHost(address)
        self._buffers, self._pinned, self._scratch = {}, {}, 0
        cuda.cudaStreamDestroy(self._stream)
