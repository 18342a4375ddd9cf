"""The kernels that TensorRT-RTX compiles for an engine on this machine, kept for the next start. JetPack's TensorRT compiles none."""

from __future__ import annotations

import contextlib
from typing import Any

from compass_edge.engines.engine_record import EngineRecord
from compass_edge.engines.tensorrt.kept import cache_folder, read_hashed, write_hashed
from compass_edge.errors import CompassError


class KernelCache:
    def __init__(self, engine: Any, record: EngineRecord, api: Any) -> None:
        self._path = cache_folder() / f"{record.sha256}-{record.version}.kernels"
        self._kept = b""
        self._cache: Any = None
        self.strategy: Any = api.ExecutionContextAllocationStrategy.USER_MANAGED  # what a context is made with
        if not hasattr(engine, "create_runtime_config"):
            return
        config = engine.create_runtime_config()
        config.set_execution_context_allocation_strategy(self.strategy)
        self._cache = config.create_runtime_cache()
        self._kept = read_hashed(self._path) or b""
        if self._kept and not self._cache.deserialize(self._kept):
            self._kept = b""  # of another driver: it is compiled and kept again
        config.set_runtime_cache(self._cache)
        self.strategy = config

    def save(self) -> None:
        """If anything was compiled. A full disk costs the next start its time, and this one nothing."""
        if self._cache is None:
            return
        content = bytes(self._cache.serialize() or b"")
        if content and content != self._kept:
            with contextlib.suppress(CompassError):
                write_hashed(self._path, content)
            self._kept = content
