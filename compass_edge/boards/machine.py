"""What a machine says about itself. An empty text or None: it did not say; `troubles` has the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    sm: int | None = None  # compute capability times ten
    memory: int | None = None  # bytes of its own; None: it shares the CPU's, or did not say
    free: int | None = None
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    arch: str
    python_abi: str  # cp312
    glibc: tuple[int, int] | None = None
    model: str = ""  # of the device tree, or of the mainboard
    l4t: str = ""  # R39.2.1
    os_id: str = ""  # ubuntu
    os_version: str = ""  # 24.04
    gpu: Gpu | None = None  # the first; others are in `gpus`
    gpus: int = 0
    memory: int | None = None
    free: int | None = None
    power_mode: str = ""
    clocks: str = ""
    cudart: tuple[str, ...] = ()  # sonames: libcudart.so.13
    nvinfer: tuple[str, ...] = ()  # libnvinfer.so.10
    tensorrt: str = ""  # version of the system's library, by its file: 10.16.0
    packages: Mapping[str, str] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()

    @property
    def l4t_release(self) -> str:
        """R39.2 of R39.2.1: what payloads go by."""
        return ".".join(self.l4t.split(".")[:2])

    @property
    def jetpack(self) -> str:
        return _JETPACKS.get(self.l4t_release, _BY_MAJOR.get(self.l4t.partition(".")[0], ""))

    @property
    def jetson(self) -> bool:
        return bool(self.l4t) or "Jetson" in self.model


_JETPACKS = {
    "R36.2": "6.0 developer preview",
    "R36.3": "6.0",
    "R36.4": "6.1 or 6.2",
    "R38.2": "7.0",
    "R38.4": "7.1",
    "R39.2": "7.2",
}
_BY_MAJOR = {"R32": "4", "R34": "5", "R35": "5", "R36": "6", "R38": "7", "R39": "7"}
