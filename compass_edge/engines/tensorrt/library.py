"""The TensorRT of this machine, of either flavour: one API, two packages, and a sentence where it is not installed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from compass_edge.errors import EnvironmentFault

# The bindings alone are enough; the package of the plain name is what NVIDIA's own installer brings.
_MODULES = {"tensorrt-rtx": ("tensorrt_rtx_bindings", "tensorrt_rtx"), "tensorrt": ("tensorrt",)}
_CURES = {
    "tensorrt-rtx": "pip install 'compass-edge[tensorrt-rtx]' (95 MB, Linux on x86-64 and aarch64, no GPU needed to build)",
    "tensorrt": "on a Jetson with JetPack 7, sudo apt install python3-libnvinfer, in a virtual environment made with "
    "--system-site-packages; engines for Orin and Thor are built on the device itself",
}


@dataclass(frozen=True, slots=True)
class Library:
    flavour: str
    version: str
    api: Any  # the module


def open_library(flavour: str) -> Library:
    said = []
    for name in _MODULES[flavour]:
        try:
            module: Any = importlib.import_module(name)
        except (ImportError, OSError) as error:  # OSError: its library lacks one of its own
            said.append(f"{name}: {error}")
            continue
        return Library(flavour, str(module.__version__), module)
    raise EnvironmentFault(f"{flavour} is needed here and cannot be loaded ({'; '.join(said)}): {_CURES[flavour]}.")


class Log:
    """What the library complains about, kept for the sentence that we make of it instead of being printed."""

    def __init__(self, library: Library) -> None:
        api = library.api
        kept: list[str] = []

        class _Logger(api.ILogger):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                api.ILogger.__init__(self)

            def log(self, severity: Any, message: str) -> None:
                if severity in (api.ILogger.ERROR, api.ILogger.INTERNAL_ERROR):
                    kept.append(message)
                    del kept[:-20]

        self.logger: Any = _Logger()
        self._kept = kept

    @property
    def last(self) -> str:
        return " ".join(self._kept[-1].split()) if self._kept else "it gives no reason"
