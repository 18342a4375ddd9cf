# ruff: noqa: N802, N815
"""CUDA and TensorRT as far as the Gpu uses them, on the host's memory: the logic around the calls runs where no GPU is.

A stream does nothing until it is waited for, so that whoever touches staging too early reads or sends the wrong bytes.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tensorrt_samples import VERSION, tensors_of

Work = Callable[[], None]


class FakeCuda(ModuleType):
    """cuda.bindings.runtime: every call gives its status, then what it gives."""

    cudaStreamNonBlocking = 1
    cudaMemcpyKind = SimpleNamespace(cudaMemcpyHostToDevice=1, cudaMemcpyDeviceToHost=2, cudaMemcpyDeviceToDevice=3)
    cudaStreamCaptureMode = SimpleNamespace(cudaStreamCaptureModeThreadLocal=1)
    cudaDeviceAttr = SimpleNamespace(cudaDevAttrComputeCapabilityMajor=0, cudaDevAttrComputeCapabilityMinor=1)

    def __init__(self, capability: tuple[int, int]) -> None:
        super().__init__("cuda.bindings.runtime")
        self._capability = capability
        self.memory: dict[int, Any] = {}
        self.allocations = 0
        self.queue: list[Work] = []
        self.captured: list[Work] | None = None
        self.graphs = self.launches = self.streams = 0
        self.fails: str | None = None

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cuda") and name == object.__getattribute__(self, "fails"):
            return lambda *_: (700,)
        return super().__getattribute__(name)

    def cudaGetErrorString(self, status: int) -> Any:
        return 0, f"error {status}".encode()

    def cudaGetDevice(self) -> Any:
        return 0, 0

    def cudaDeviceGetAttribute(self, attribute: int, _device: int) -> Any:
        return 0, self._capability[attribute]

    def cudaMalloc(self, size: int) -> Any:
        kept = ctypes.create_string_buffer(b"\xff" * size, size)
        self.memory[ctypes.addressof(kept)] = kept
        self.allocations += 1
        return 0, ctypes.addressof(kept)

    cudaMallocHost = cudaMalloc

    def cudaFree(self, address: int) -> Any:
        del self.memory[address]
        return (0,)

    cudaFreeHost = cudaFree

    def cudaStreamCreateWithPriority(self, _flags: int, _priority: int) -> Any:
        self.streams += 1
        return 0, 77

    def cudaStreamDestroy(self, _stream: int) -> Any:
        self.streams -= 1
        return (0,)

    def enqueue(self, work: Work) -> None:
        (self.queue if self.captured is None else self.captured).append(work)

    def cudaMemcpyAsync(self, target: int, source: int, count: int, _kind: int, _stream: int) -> Any:
        self.enqueue(lambda: ctypes.memmove(target, source, count) and None)
        return (0,)

    def cudaMemsetAsync(self, address: int, value: int, count: int, _stream: int) -> Any:
        self.enqueue(lambda: ctypes.memset(address, value, count) and None)
        return (0,)

    def cudaStreamSynchronize(self, _stream: int) -> Any:
        assert self.captured is None, "waiting ends a capture"
        for work in self.queue:
            work()
        self.queue.clear()
        return (0,)

    def cudaStreamBeginCapture(self, _stream: int, _mode: int) -> Any:
        self.captured = []
        return (0,)

    def cudaStreamEndCapture(self, _stream: int) -> Any:
        graph, self.captured = self.captured, None
        return 0, graph

    def cudaGraphInstantiate(self, graph: list[Work], _flags: int) -> Any:
        self.graphs += 1
        return 0, tuple(graph)

    def cudaGraphDestroy(self, _graph: list[Work]) -> Any:
        return (0,)

    def cudaGraphExecDestroy(self, _graph: Any) -> Any:
        self.graphs -= 1
        return (0,)

    def cudaGraphLaunch(self, graph: tuple[Work, ...], _stream: int) -> Any:
        self.launches += 1
        for work in graph:
            self.enqueue(work)
        return (0,)


class _Logger:
    ERROR, INTERNAL_ERROR = 1, 0


class FakeTensorRt(ModuleType):
    """Engines are files whose graph is known; ONNX Runtime computes what they would."""

    __version__ = VERSION
    ILogger = _Logger
    ExecutionContextAllocationStrategy = SimpleNamespace(USER_MANAGED="ours")

    def __init__(self, cuda: FakeCuda) -> None:
        super().__init__("tensorrt_rtx_bindings")
        self.cuda = cuda
        self.graphs: dict[bytes, Path] = {}
        self.capturable = True
        self.driver, self.compiled = b"kernels of a driver", 0
        self.off = 0.0  # added to what an engine gives: a machine that computes garbage

    def Runtime(self, _logger: Any) -> Any:
        def deserialize(content: Any) -> _Engine | None:
            graph = self.graphs.get(bytes(content))
            return None if graph is None else _Engine(self, graph)

        return SimpleNamespace(deserialize_cuda_engine=deserialize)


class _Engine:
    device_memory_size_v2 = 4096

    def __init__(self, api: FakeTensorRt, graph: Path) -> None:
        self.api, self.tensors = api, tensors_of(graph)
        self.session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
        self.num_io_tensors = len(self.tensors)

    def get_tensor_name(self, at: int) -> str:
        return list(self.tensors)[at]

    def create_runtime_config(self) -> _RuntimeConfig:
        return _RuntimeConfig(self.api)

    def create_execution_context(self, config: _RuntimeConfig) -> _Context:
        assert config.strategy == "ours"
        assert config.cache is not None
        config.cache.compile()
        return _Context(self)


class _RuntimeConfig:
    strategy, cache = "", None

    def __init__(self, api: FakeTensorRt) -> None:
        self._api = api

    def set_execution_context_allocation_strategy(self, strategy: str) -> None:
        self.strategy = strategy

    def create_runtime_cache(self) -> _RuntimeCache:
        return _RuntimeCache(self._api)

    def set_runtime_cache(self, cache: _RuntimeCache) -> None:
        self.cache = cache


class _RuntimeCache:
    """Of kernels for a driver: another one does not take them."""

    def __init__(self, api: FakeTensorRt) -> None:
        self._api, self._kernels = api, b""

    def deserialize(self, content: bytes) -> bool:
        if content != self._api.driver:
            return False
        self._kernels = content
        return True

    def serialize(self) -> bytes:
        return self._kernels

    def compile(self) -> None:
        if not self._kernels:
            self._api.compiled += 1
            self._kernels = self._api.driver


class _Context:
    def __init__(self, engine: _Engine) -> None:
        self._engine, self._shapes, self._addresses, self._scratch = engine, {}, {}, 0  # type: ignore[var-annotated]

    def set_device_memory(self, address: int, size: int) -> None:
        assert size >= self._engine.device_memory_size_v2
        self._scratch = address

    def set_tensor_address(self, name: str, address: int) -> bool:
        self._addresses[name] = address
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self._shapes[name] = shape
        return True

    def is_stream_capturable(self, _stream: int) -> bool:
        return self._engine.api.capturable

    def execute_async_v3(self, stream: int) -> bool:
        assert stream == 77
        assert self._scratch
        shapes = dict(self._shapes)
        self._engine.api.cuda.enqueue(lambda: self._compute(shapes))
        return True

    def _compute(self, shapes: dict[str, tuple[int, ...]]) -> None:
        assert shapes == self._shapes, "a graph whose context has been used for other shapes is undefined"
        feeds, tensors = {}, self._engine.tensors
        for name, shape in shapes.items():
            feeds[name] = self._view(name, shape).copy()
        names = [name for name, tensor in tensors.items() if not tensor.given]
        for name, values in zip(names, self._engine.session.run(names, feeds), strict=True):
            self._view(name, values.shape)[...] = values + np.asarray(self._engine.api.off, values.dtype)

    def _view(self, name: str, shape: tuple[int, ...]) -> Any:
        dtype = np.dtype(self._engine.tensors[name].dtype)
        area = (ctypes.c_uint8 * (int(np.prod(shape)) * dtype.itemsize)).from_address(self._addresses[name])
        return np.ctypeslib.as_array(area).view(dtype).reshape(shape)


def install(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] = (8, 6)) -> tuple[FakeCuda, FakeTensorRt]:
    """In the place of cuda-python and TensorRT-RTX."""
    cuda = FakeCuda(capability)
    tensorrt = FakeTensorRt(cuda)
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", cuda)
    monkeypatch.setitem(sys.modules, "cuda.bindings", ModuleType("cuda.bindings"))
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    for name in ("tensorrt_rtx_bindings", "tensorrt"):
        monkeypatch.setitem(sys.modules, name, tensorrt)
    return cuda, tensorrt
