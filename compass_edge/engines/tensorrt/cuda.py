"""The CUDA runtime by cuda-python: each call checked, and a sentence where there is none. Only its refusals have run yet."""

from __future__ import annotations

import importlib
from typing import Any

from compass_edge.errors import CompassError, EnvironmentFault

_CURE = "pip install 'cuda-bindings>=13,<14'"


class Cuda:
    """`cuda.cudaMalloc(16)` gives what the call gives without its status, and raises where that is an error."""

    def __init__(self) -> None:
        try:
            self._runtime: Any = importlib.import_module("cuda.bindings.runtime")
        except (ImportError, OSError, RuntimeError) as error:
            raise EnvironmentFault(f"Running TensorRT's engines needs cuda-python ({error}): {_CURE}.") from error

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._runtime, name)
        if not callable(found) or isinstance(found, type):  # an enumeration
            return found

        def call(*arguments: Any) -> Any:
            status, *given = found(*arguments)
            if int(status):
                _, said = self._runtime.cudaGetErrorString(status)
                text = said.decode() if isinstance(said, bytes) else str(said)
                raise CompassError(
                    f"The GPU failed at {name}: {text}. After such an error nothing more runs in this process: start it again, and if it "
                    "comes back, look at `compass-edge doctor` and dmesg."
                )
            return given[0] if len(given) == 1 else given or None

        return call

    def target(self) -> str:
        """The chip of the current device: sm_86."""
        kind = self._runtime.cudaDeviceAttr
        try:
            device = self.cudaGetDevice()
        except CompassError as error:
            said = str(error).partition(": ")[2].partition(". ")[0]
            raise EnvironmentFault(
                f"TensorRT's engines need an NVIDIA GPU, and none answers here ({said}). Install or update its driver (nvidia-smi must "
                "list it), or run the model on ONNX Runtime."
            ) from error
        major = self.cudaDeviceGetAttribute(kind.cudaDevAttrComputeCapabilityMajor, device)
        minor = self.cudaDeviceGetAttribute(kind.cudaDevAttrComputeCapabilityMinor, device)
        return f"sm_{major}{minor}"
